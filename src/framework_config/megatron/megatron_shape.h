/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape of a model in Megatron-LM's options.
 */
#pragma once

#include "framework_config/common/system_config.h"

typedef struct {
    uint64_t layers, hidden, ffn, heads, groups, channels, vocab;
    uint64_t experts, top, expert_ffn;
    uint64_t shared_ffn, dense_ffn, positions;
    char *dense; /* one digit per layer, '0' for a layer without experts; NULL: all have experts */
    bool grouped, gated, untied, shared, qkv_bias, biases, qk_norm;
} LhMegatronShape;

/* Reads the shape; members that the file does not set are unchanged. */
bool lh_config_megatron_read_shape(LhConfig *c, LhMegatronShape *s, GError **error);

/* Derives the remaining members. Arguments have a separate flag for grouped heads; YAML has not. */
void lh_config_megatron_fill_shape(LhConfig *c, LhMegatronShape *s);

/* Reads which layers have no experts. If none has any, the model is dense. */
bool lh_config_megatron_take_dense_layers(LhConfig *c, LhMegatronShape *s, GError **error);

/* Rejects shared experts in a model without other experts. */
bool lh_config_megatron_take_shared_experts(const LhConfig *c, const LhMegatronShape *s,
                                            GError **error);

/* Rejects Megatron-DeepSpeed's experts, which are in every n-th layer, with one expert per token;
 * one expert means none. */
bool lh_config_megatron_take_deepspeed_experts(const LhConfig *c, LhMegatronShape *s,
                                               GError **error);
