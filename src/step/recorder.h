/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorder of the calls of a micro-batch, or of a whole pipeline stage.
 */
#pragma once

#include "step/step_private.h"

/* The loop over tiles whose rows are being recorded. */
typedef struct {
    LhStepTiling tiling;   /* LH_STEP_NO_TILES: none */
    uint32_t tile;         /* index */
    uint32_t first_tensor; /* tensors from this one on were made in the loop */
    bool forgot;           /* roles of the tile have been forgotten, to be recomputed */
} LhStepLoop;

typedef struct {
    LhStepPlan *plan;
    LhStepList *list;
    uint32_t stage;
    uint32_t micro_batches; /* in a pipeline: number recorded */
    uint16_t micro_batch;   /* in a pipeline; else relative to the list */
    bool last;              /* the optimizer follows this micro-batch */
    uint8_t phase;
    /* [layers + 1], of the micro-batch: current tensor of each role, or LH_STEP_NONE. */
    uint32_t (*roles)[LH_STEP_ROLES];
    /* [families x places]: current tensor of each weight's families; see lh_step_weight_place(). */
    uint32_t *of_weights;
    GArray *waiting;  /* of uint32_t: units whose gradients are reduced after the backward pass */
    uint32_t gathers; /* number of gathers so far */
    LhStepLoop loop;
    bool written[LH_STEP_ROLES]; /* by the current tile of a loop */
} LhStepRecorder;

/* Adds a tensor; returns its index. */
uint32_t lh_step_add_tensor(LhStepRecorder *r, LhStepTensor tensor);

/* Adds a call to be filled in; the pointer is valid until the next one is added. */
LhStepCall *lh_step_add_call(LhStepRecorder *r, LhStepCallKind does, LhStepStream stream,
                             uint32_t layer);

/* Stores @args and assigns them to @call, whose kernel is set. */
void lh_step_set_args(LhStepRecorder *r, LhStepCall *call, const LhKernelArgs *args);

/* Adds a use to @call, which must be the latest call with any. */
void lh_step_add_use(LhStepRecorder *r, LhStepCall *call, LhStepUse use);
