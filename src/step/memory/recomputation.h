/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recomputation: what is kept of each layer, as data, and what runs again before its backward pass.
 */
#pragma once

#include "step/recorder.h"

/* Roles of a layer that are kept after its forward pass, as bits. No gradient is kept. */
#define LH_STEP_KEPT_BITS 64
uint64_t lh_step_kept(const LhStepPlan *plan, uint32_t layer);

/* The first of the layers that are recomputed together with @layer; itself if there are none. */
uint32_t lh_step_recomputed_from(const LhStepPlan *plan, uint32_t layer);

/* Records what runs again as a whole before the layer's backward pass; what its rows read beyond
 * that follows when they read it (lh_step_need()). */
void lh_step_call_again(LhStepRecorder *r, uint32_t layer);

/* Records the first norm again, if its output was discarded: before attention's backward pass. */
void lh_step_restore_norm(LhStepRecorder *r, uint32_t layer);

/* Whether the model has the modules and layers that @p recomputes. */
bool lh_step_check_recomputation(const LhStepParams *p, GError **error);
