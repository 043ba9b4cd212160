/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bound of the time of a pipeline whose stages exchange rows and gradients.
 */
#pragma once

#include "step/pipeline/pipeline.h"

/* What a stage does besides its layers, for each micro-batch. */
typedef struct {
    LhTime head_ps; /* last norm, head and loss, forward and backward, on the last stage */
    /* By sender: rows to the next stage, and their gradient to the previous one. */
    const LhTime *message_ps[2];
} LhStepStageTimes;

/* Lower bound as of lh_step_pipeline_least(), for several stages, which also exchange rows and
 * gradients, in the order of the program: both ends of a message wait for each other. */
LhTime lh_step_pipeline_exchanged(const LhStepParams *params, const LhStepLayerTimes *of,
                                  const LhStepStageTimes *ends);
