/*
 * What stage_calls.c and sharding.c share while they write down a micro-batch, or all of a stage.
 */
#pragma once

#include "step/step_private.h"

typedef struct {
    LhStepPlan *plan;
    LhStepList *list;
    uint32_t stage;
    uint16_t micro_batch; /* in a pipeline; else each of those that have the list */
    bool last;            /* the micro-batch behind which the optimizer comes */
    uint8_t phase;
    uint32_t (*roles)[LH_STEP_ROLES]; /* of the micro-batch: [layers + 1] the tensor that a role is
                                         now, or LH_STEP_NONE */
    /* [families x places] likewise, of what is a weight's; see place_of() in sharding.c. */
    uint32_t *of_weights;
    GArray *waiting;  /* of uint32_t: units whose gradients are reduced behind the backward pass */
    uint32_t gathers; /* so far */
} LhStepRecorder;

/* A new tensor of this family; its index. */
uint32_t lh_step_add_tensor(LhStepRecorder *r, LhStepTensor tensor);

/* A new call, to be filled in; valid until the next. */
LhStepCall *lh_step_add_call(LhStepRecorder *r, LhStepCallKind does, LhStepStream stream,
                             uint32_t layer);

/* Keeps @args and gives @call them. */
void lh_step_set_args(LhStepRecorder *r, LhStepCall *call, const LhKernelArgs *args);

/* Adds to the uses of @call, the last one that has been given any. */
void lh_step_add_use(LhStepRecorder *r, LhStepCall *call, LhStepUse use);

/* ---- sharding.c ---- */

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

void lh_step_record_optimizer(LhStepRecorder *r);
