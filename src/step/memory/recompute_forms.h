/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of recomputation: what a layer computes and sends again in its backward pass, from
 * the policy alone. The builder's rules (recomputation.c) are not used.
 */
#pragma once

#include "step/graph.h"

/* Whether all of the layer is recomputed, with its last product. */
bool lh_step_layer_again(const LhStepPlan *plan, uint32_t layer);

/* Whether the product with @weight, or attention's forward pass, is computed again. */
bool lh_step_product_again(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);
bool lh_step_attention_again(const LhStepPlan *plan, uint32_t layer);

/* Number of times that rows of the layer travel in the backward pass as they did forward, within a
 * group of at least two tensor-parallel ranks. */
uint64_t lh_step_moves_again(const LhStepPlan *plan, uint32_t layer);

/* Whether FSDP gathers the layer once for recomputation and once more for its gradients. */
bool lh_step_weights_again(const LhStepPlan *plan, uint32_t layer);
