/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines: which layers a stage has, and how long its works take at least.
 */
#pragma once

#include "step/step.h"

/* Indexed by LhPipelineOrder, NULL-terminated: "1f1b", "gpipe". */
extern const char *const lh_pipeline_order_names[];

/* The @place-th chunk of all has layers from this one up to that of the next place; there are
 * stages x chunks places, and behind them comes the number of layers. */
uint32_t lh_step_chunk_begins(const LhStepParams *params, uint32_t place);

/* Layers of a stage. */
uint32_t lh_step_stage_layers(const LhStepParams *params, uint32_t stage);

/* What each layer adds, for each micro-batch, to the time that the first stream of its stage works
 * or waits for collectives of the layer's own. */
typedef struct {
    LhTime forward_ps, recompute_ps, backward_ps;
    LhTime accumulate_ps; /* of backward_ps: adding up gradients of weights that were reduced */
} LhStepLayerTimes;

/*
 * What the stages of a pipeline take at least: each does its works one after another, and rows and
 * gradients take no time on their way. Both are the last that the first stream of a stage makes for
 * a chunk, forward and backward, but for what it accumulates.
 */
LhTime lh_step_pipeline_least(const LhStepParams *params, const LhStepLayerTimes *of);
