/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipeline parallelism: layers of a stage, and a lower bound of the pipeline's time.
 */
#pragma once

#include "step/step.h"

/* Indexed by LhPipelineOrder, NULL-terminated: "1f1b", "gpipe". */
extern const char *const lh_pipeline_order_names[];

/* First layer of chunk @place (of stages x chunks in the model); for the place after the last, the
 * number of layers. */
uint32_t lh_step_chunk_begins(const LhStepParams *params, uint32_t place);

/* Layers of a stage. */
uint32_t lh_step_stage_layers(const LhStepParams *params, uint32_t stage);

/* Time that each layer adds, for each micro-batch, to the first stream of its stage: work, and
 * waits for the layer's own collectives. */
typedef struct {
    LhTime forward_ps, recompute_ps, backward_ps;
    LhTime accumulate_ps; /* part of backward_ps: accumulating reduced weight gradients */
} LhStepLayerTimes;

/*
 * Lower bound of the time of a pipeline. Each stage does its works one after another; transfers of
 * rows and gradients take no time. It assumes that the rows and gradients for other stages are the
 * last results of the first stream for a chunk, except for accumulation.
 */
LhTime lh_step_pipeline_least(const LhStepParams *params, const LhStepLayerTimes *of);
