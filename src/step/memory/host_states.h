/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload of optimizer states and weights: which are in host memory, and the calls around them.
 */
#pragma once

#include "step/sharding.h"

/* Chooses the weights whose states are in host memory; needs the plan's sizes. */
void lh_step_choose_host_states(LhStepPlan *plan);

/* Whether ranks of @stage have the optimizer states of a weight in host memory. */
bool lh_step_is_host_state(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight,
                           uint32_t layer);

/* Whether the gradient of such a weight goes to the host when it has been reduced; else when the
 * optimizer runs. */
bool lh_step_gradient_leaves(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight,
                             uint32_t layer);

/* Whether weights are copied in before they are used: all are in host memory. */
bool lh_step_fetches(const LhStepPlan *plan);

/* Records a copy of a weight from the host, for gather @gather, to @to. */
void lh_step_fetch(LhStepRecorder *r, LhStepHeld w, uint32_t to, uint32_t gather);

/* Records what follows the reduction of @weights (of LhStepHeld): copies of gradients that leave,
 * from the tensors of @family; with @adds they are added to those of earlier micro-batches. */
void lh_step_leave(LhStepRecorder *r, const GArray *weights, LhStepFamily family, bool adds);

/* Records a copy of the norm of gradients to the host, or back. */
void lh_step_copy_norm(LhStepRecorder *r, bool to_host);

/* Records the copies of gradients that have not left yet, unless they overlap with updates; and the
 * updates on the CPU with the copies around them, each unit followed by @after (NULL: nothing). */
void lh_step_copy_gradients(LhStepRecorder *r);
void lh_step_update_on_cpu(LhStepRecorder *r, void (*update)(LhStepRecorder *r, LhStepHeld w),
                           void (*after)(LhStepRecorder *r, uint32_t unit));
