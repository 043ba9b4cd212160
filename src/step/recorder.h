/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What writes down the calls of a micro-batch, or all of a stage.
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
    /* [families x places] likewise, of what is a weight's; see lh_step_weight_place(). */
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
