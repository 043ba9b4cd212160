/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LoRA (arXiv 2106.09685): which weights are trained, and the adapters' sizes.
 *
 * A matrix W that is a target has an adapter, and its product is x W + x A B. Everything but the
 * adapters is frozen: no gradient, no reduction, no optimizer states. The scale alpha / rank is
 * part of B. q, k and v have one A, and gate and up have one, as in Megatron-Bridge.
 *
 * Adapters are cut among tensor-parallel ranks as their matrix is, as peft does for Megatron's
 * layers: B by columns if W is, A by rows if W is; the other one is whole on every rank. Where A is
 * cut, each rank multiplies its term of x A with B, into its term of the sum of W's results.
 */
#pragma once

#include "step/tensor_sizes.h"

/* Whether the optimizer updates the weight. */
bool lh_step_is_trained(const LhStepParams *params, LhStepWeight weight);

/* Whether a layer has the row: it has its features, and the row is not for the gradient of a frozen
 * weight. */
bool lh_step_takes(const LhStepPlan *plan, const LhStepNode *node, uint32_t layer);

/* Features of all layers, as bits. */
uint32_t lh_step_lora_features(const LhStepParams *params);

/* Whether the gradient of some matrix is computed from gathered rows of @role: N1_FULL, N2_FULL or
 * XF_FULL. */
bool lh_step_is_read_again(const LhStepParams *params, LhStepRole role);

/* Whether a layer has the adapter's matrix, whose features are @features; and the matrix on a
 * tensor-parallel rank, of an adapter of @base (of Q for QKV_A). */
bool lh_step_has_adapter(LhStepWeight weight, uint32_t features);
LhStepMatrix lh_step_adapter(const LhStepParams *params, LhStepWeight weight,
                             const LhStepMatrix *base);
LhStepWeight lh_step_adapted(LhStepWeight weight);

/* Whether the weight is the A, of an adapter. */
bool lh_step_is_a(LhStepWeight weight);

/* An adapter's matrix of which every tensor-parallel rank has columns or rows of its own. */
LhStepWeight lh_step_cut_adapter(const LhStepParams *params);

/* Parameters of all adapters of a layer, on all ranks; @linear: its attention is linear. */
uint64_t lh_step_adapter_parameters(const LhStepParams *params, bool linear);

/* "linear_qkv,linear_proj": the targets. Caller frees. */
char *lh_step_lora_text(const LhStepParams *params);

/* Reads a list of targets, by Megatron's or peft's names; NULL: all. The reason why not, or NULL;
 * caller frees. */
char *lh_step_lora_parse(const char *text, uint32_t *targets);

/* Checks that adapters of the targets are possible; else LH_ERROR_NO. */
bool lh_step_check_lora(const LhStepParams *params, GError **error);
