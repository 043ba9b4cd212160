/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a model in options of Megatron-LM.
 */
#pragma once

#include "framework_config/common/system_config.h"

typedef struct {
    uint64_t layers, hidden, ffn, heads, groups, channels, vocab;
    uint64_t experts, top, expert_ffn;
    uint64_t shared_ffn, dense_ffn, positions;
    char *dense; /* a digit for each layer, '0' where it has no experts; NULL: all have them */
    bool grouped, gated, untied, shared, qkv_bias, biases, qk_norm;
} LhMegatronShape;

/* Reads what the file says of it; what it does not say stays. */
bool lh_config_megatron_read_shape(LhConfig *c, LhMegatronShape *s, GError **error);

/* Fills in what follows from the rest. Arguments have a flag of their own for grouped heads; YAML
 * has not. */
void lh_config_megatron_fill_shape(LhConfig *c, LhMegatronShape *s);

/* Which layers have no experts. Where none has any, the model is dense. */
bool lh_config_megatron_take_dense_layers(LhConfig *c, LhMegatronShape *s, GError **error);

/* Refuses shared experts of a model that has no others. */
bool lh_config_megatron_take_shared_experts(const LhConfig *c, const LhMegatronShape *s,
                                            GError **error);

/* Megatron-DeepSpeed's experts stand in every so manieth layer, each token has one of them, and one
 * expert is none. */
bool lh_config_megatron_take_deepspeed_experts(const LhConfig *c, LhMegatronShape *s,
                                               GError **error);
