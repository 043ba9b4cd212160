/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights and gradients while calls are written down: where they are, who gathers and who reduces
 * them.
 */
#pragma once

#include "step/recorder.h"

/* ---- around a micro-batch ---- */

void lh_step_begin_weights(LhStepRecorder *r);
void lh_step_end_weights(LhStepRecorder *r);

/* The tensor of a whole weight, gathered if need be; the weight must be there. */
uint32_t lh_step_weight(LhStepRecorder *r, LhStepWeight weight, uint32_t layer);

/* That of its gradient; @starts is set if this is the first term of it in the micro-batch, and
 * @fresh if other micro-batches have left nothing in it. */
uint32_t lh_step_gradient(LhStepRecorder *r, LhStepWeight weight, uint32_t layer, bool *starts,
                          bool *fresh);

/* One tensor of the rank that stays: tokens, targets, the loss. */
uint32_t lh_step_staying(LhStepRecorder *r, LhStepFamily family);

/* The weights of a unit are not needed any more for now; their gradients are complete. */
void lh_step_drop_weights(LhStepRecorder *r, LhStepWeight any, uint32_t layer);
void lh_step_reduce_gradients(LhStepRecorder *r, LhStepWeight any, uint32_t layer);

/* Likewise of the whole model, where that is one unit. */
void lh_step_reduce_model(LhStepRecorder *r);

/* Gradients are reduced in every micro-batch, and go then. */
bool lh_step_reduces_each(const LhStepPlan *plan);

/* Reductions that have waited for the end of the backward pass. */
void lh_step_reduce_waiting(LhStepRecorder *r);

/* ---- weights one by one, for the optimizer ---- */

/* A weight that a rank holds, by its layer (0 for those that belong to none). */
typedef struct {
    LhStepWeight weight;
    uint32_t layer;
} LhStepHeld;

/* Whether the stage has it. */
bool lh_step_is_here(const LhStepRecorder *r, LhStepHeld w);

/* The tensor of @family that belongs to a weight; made if it is not there. And where that is noted;
 * LH_STEP_NONE: it is not there. */
uint32_t lh_step_weight_tensor(LhStepRecorder *r, LhStepFamily family, LhStepHeld w, bool stays);
uint32_t *lh_step_weight_place(LhStepRecorder *r, LhStepFamily family, LhStepHeld w);

/* How many units there are; the weights of one that the stage has, each once (of LhStepHeld; caller
 * unrefs); and its first layer, 0 where it has none. */
uint32_t lh_step_units(const LhStepPlan *plan);
GArray *lh_step_unit_weights(const LhStepRecorder *r, uint32_t number);
uint32_t lh_step_unit_layer(const LhStepPlan *plan, uint32_t number);

/* Whether weights are cut, too, and gathered before they are used. */
bool lh_step_is_sharded(const LhStepPlan *plan);

/* Puts tensors into as few collectives as they fit into, up to the closing of the last one. */
typedef struct {
    LhStepStream stream;
    uint32_t layer;
    LhCollectiveKind kind;
    LhStepGroup group;
    uint32_t gather;
} LhStepCollective;
void lh_step_add_collective(LhStepRecorder *r, const LhStepCollective *c, const LhStepUse *send,
                            const LhStepUse *receive);
void lh_step_close_collective(LhStepRecorder *r);
