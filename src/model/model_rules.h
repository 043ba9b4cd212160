/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks and defaults shared by the two readers of model files.
 */
#pragma once

#include "model/model.h"

/* Upper bounds. They keep every product of two sizes within 64 bits and are far above any existing
 * model. */
#define LH_MODEL_TEXT_MAX 1000
#define LH_MODEL_LAYERS_MAX 65536
#define LH_MODEL_HEADS_MAX 65536
#define LH_MODEL_WIDTH_MAX 16777216
#define LH_MODEL_VOCAB_MAX 1073741824
#define LH_MODEL_POSITIONS_MAX 1099511627776
#define LH_MODEL_ROTARY_BASE_MAX 1e18
#define LH_MODEL_ROTARY_BASE 10000.0 /* the default, of RoFormer and LLaMA */

/* Names of a file's fields, as paths for lh_json_error; all borrowed. */
typedef struct {
    const char *hidden;
    const char *layers;
    const char *heads;
    const char *groups;
    const char *head_dim;
    const char *experts;
    const char *experts_per_token;
} LhModelKeys;

/* Checks rules that involve several fields; false sets @error at the offending field. */
bool lh_model_check(const LhJson *json, const LhModelKeys *keys, const LhModel *model,
                    GError **error);

/* Sets kv_channels to hidden_size / num_attention_heads, or fails if that is no integer. */
bool lh_model_default_kv_channels(const LhJson *json, const LhModelKeys *keys, LhModel *model,
                                  GError **error);

/* Sets the default of rotary_base; needs layers and learned positions. */
void lh_model_default_rotary(LhModel *model);

/* Sets the layers from a list of all of them (each an LhLayerRun of one layer): finds the shortest
 * pattern that they repeat. */
void lh_model_fold_layers(LhModel *model, const GArray *each);
