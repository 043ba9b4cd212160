/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights and gradients during recording: where they are, and which ranks gather and reduce them.
 */
#pragma once

#include "step/recorder.h"

/* ---- around a micro-batch ---- */

void lh_step_begin_weights(LhStepRecorder *r);
void lh_step_end_weights(LhStepRecorder *r);

/* Tensor of a whole weight, gathered if necessary; the stage must have the weight. */
uint32_t lh_step_weight(LhStepRecorder *r, LhStepWeight weight, uint32_t layer);

/* Tensor of the weight's gradient. Sets @starts if this is its first term in the micro-batch, and
 * @fresh if other micro-batches have left nothing in it. */
uint32_t lh_step_gradient(LhStepRecorder *r, LhStepWeight weight, uint32_t layer, bool *starts,
                          bool *fresh);

/* The rank's permanent tensor of a family: tokens, targets, the loss. */
uint32_t lh_step_staying(LhStepRecorder *r, LhStepFamily family);

/* The weights of the unit are no longer needed for now; its gradients are complete. */
void lh_step_drop_weights(LhStepRecorder *r, LhStepWeight any, uint32_t layer);
void lh_step_reduce_gradients(LhStepRecorder *r, LhStepWeight any, uint32_t layer);

/* The gradients of the whole model are complete, if it is one unit. */
void lh_step_reduce_model(LhStepRecorder *r);

/* Whether gradients are reduced in every micro-batch and freed afterwards. */
bool lh_step_reduces_each(const LhStepPlan *plan);

/* Records the reductions that were postponed to the end of the backward pass. */
void lh_step_reduce_waiting(LhStepRecorder *r);

/* ---- single weights, for the optimizer ---- */

/* A weight that a rank holds, with its layer (0 for weights outside layers). */
typedef struct {
    LhStepWeight weight;
    uint32_t layer;
} LhStepHeld;

/* Whether the stage has the weight. */
bool lh_step_is_here(const LhStepRecorder *r, LhStepHeld w);

/* Tensor of @family for a weight, created if absent; and the entry that stores it (LH_STEP_NONE:
 * absent). */
uint32_t lh_step_weight_tensor(LhStepRecorder *r, LhStepFamily family, LhStepHeld w, bool stays);
uint32_t *lh_step_weight_place(LhStepRecorder *r, LhStepFamily family, LhStepHeld w);

/* Number of units; the weights of a unit that the stage has (LhStepHeld; caller unrefs); the first
 * layer of a unit, 0 if it has none. */
uint32_t lh_step_units(const LhStepPlan *plan);
GArray *lh_step_unit_weights(const LhStepRecorder *r, uint32_t number);
/* Those of them that are trained. */
GArray *lh_step_trained_weights(const LhStepRecorder *r, uint32_t number);
uint32_t lh_step_unit_layer(const LhStepPlan *plan, uint32_t number);

/* Whether weights are sharded too, and gathered before use. */
bool lh_step_is_sharded(const LhStepPlan *plan);

/* Adds tensors to as few collectives as possible, until lh_step_close_collective(). */
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
