/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two readers of model files share.
 */
#pragma once

#include "model/model.h"

/* Bounds that keep every product of two sizes within 64 bits, far above any model there is. */
#define LH_MODEL_TEXT_MAX 1000
#define LH_MODEL_LAYERS_MAX 65536
#define LH_MODEL_HEADS_MAX 65536
#define LH_MODEL_WIDTH_MAX 16777216
#define LH_MODEL_VOCAB_MAX 1073741824
#define LH_MODEL_POSITIONS_MAX 1099511627776
#define LH_MODEL_ROTARY_BASE_MAX 1e18
#define LH_MODEL_ROTARY_BASE 10000.0 /* of RoFormer and LLaMA, where nothing is said */

/* What a file calls its fields, as paths for lh_json_error; all borrowed. */
typedef struct {
    const char *hidden;
    const char *layers;
    const char *heads;
    const char *groups;
    const char *head_dim;
    const char *experts;
    const char *experts_per_token;
} LhModelKeys;

/* The rules that tie several fields together; false sets @error at the field that breaks one. */
bool lh_model_check(const LhJson *json, const LhModelKeys *keys, const LhModel *model,
                    GError **error);

/* Sets kv_channels to hidden_size / num_attention_heads, or fails if that is no integer. */
bool lh_model_default_kv_channels(const LhJson *json, const LhModelKeys *keys, LhModel *model,
                                  GError **error);

/* Sets rotary_base of a file that does not state it; layers and learned positions are set. */
void lh_model_default_rotary(LhModel *model);

/* Sets the layers from a list of all of them (LhLayerRun of one layer each): the shortest pattern
 * that they repeat. */
void lh_model_fold_layers(LhModel *model, const GArray *each);
