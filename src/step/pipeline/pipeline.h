/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipeline parallelism: layers of a stage, its turns, and a lower bound of the pipeline's time.
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

/* A message of a stage: the output rows of one of its chunks, or the input rows; backward, their
 * gradient. */
typedef struct {
    bool send, backward;
    uint16_t chunk, micro_batch;
} LhStepMessage;

#define LH_STEP_MESSAGES_MAX 4

/* One action of a stage: an exchange of messages, or work on a micro-batch with one of its
 * chunks. */
typedef struct {
    uint8_t messages_count;                       /* 0: work */
    LhStepMessage messages[LH_STEP_MESSAGES_MAX]; /* in the same order at both ends */
    bool backward;
    uint16_t chunk, micro_batch;
} LhStepTurn;

/* Layers per chunk, including the embedding and the loss where they count as layers. */
uint32_t lh_step_places_of_chunk(const LhStepParams *params);

/* Number of forward works of a stage before its first backward work, minus one. */
uint32_t lh_step_warmup(const LhStepParams *params, uint32_t stage);

/* The turns of every stage, a GArray of LhStepTurn for each. Caller unrefs. */
GPtrArray *lh_step_turns(const LhStepParams *params);

/* Time that each layer adds, for each micro-batch, to the first stream of its stage: work, and
 * waits for the layer's own collectives. */
typedef struct {
    LhTime forward_ps, recompute_ps, backward_ps;
    LhTime accumulate_ps; /* part of backward_ps: accumulating reduced weight gradients */
} LhStepLayerTimes;

/*
 * Lower bound of the time of a pipeline: a stage begins when the first rows have passed the earlier
 * ones, does all its works, and then its last gradients pass the earlier ones. Transfers of rows
 * and gradients take no time. It assumes that the rows and gradients for other stages are the last
 * results of the first stream for a chunk, except for accumulation.
 */
LhTime lh_step_pipeline_least(const LhStepParams *params, const LhStepLayerTimes *of);
