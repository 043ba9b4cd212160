/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries about a step that do not need its program: names, and the place of layers and weights.
 */
#pragma once

#include "step/graph.h"

const char *lh_step_role_name(LhStepRole role);
const char *lh_step_weight_name(LhStepWeight weight);

uint32_t lh_step_layers(const LhStepPlan *plan);

/* Index of the chunk with a layer, among all chunks of the model. */
uint32_t lh_step_chunk_of(const LhStepPlan *plan, uint32_t layer);

/* Whether the layer's activations wait for its backward pass in host memory. */
bool lh_step_offloads(const LhStepPlan *plan, uint32_t layer);

/* Pipeline stage of a layer; that of the index after the last layer has the head. */
uint32_t lh_step_stage_of(const LhStepPlan *plan, uint32_t layer);
/* Whether a stage has a weight: one of its layers; the first stage also the embedding; the last one
 * the head and its norm, with a copy of the embedding if the head is tied. */
bool lh_step_stage_has(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight, uint32_t layer);
/* Whether several stages have the weight. */
bool lh_step_is_shared(const LhStepPlan *plan, LhStepWeight weight);
LhStepKind lh_step_layer_kind(const LhStepPlan *plan, uint32_t layer);

/* "chunked:256": the kind of loss, and the rows of a chunk if they are given. Caller frees. */
char *lh_step_loss_text(const LhStepParams *params);

/* Whether a role is what a forward pass alone leaves: LH_STEP_OF_RESULT. */
bool lh_step_is_result(const LhStepPlan *plan, LhStepRole role);

/* Segments of a context-parallel rank, and its tokens of a micro-batch, over all sequences. */
uint32_t lh_step_segments(const LhStepPlan *plan);
uint64_t lh_step_rank_rows(const LhStepPlan *plan);

/* Finds what part @part of a permanent slot is. False if @slot is not one of the step's, or if
 * @rank does not have it. */
typedef struct {
    LhStepFamily family;
    LhStepWeight weight; /* for families that belong to a weight */
    LhStepRole role;     /* for results */
    uint32_t layer;      /* of logits: the one after the last */
    uint32_t part;       /* index within the tensor */
} LhStepState;
bool lh_step_state_at(const LhStepPlan *plan, uint32_t rank, uint32_t slot, uint32_t part,
                      LhStepState *state);

/* Dimension that the op communicates for; LH_DIMENSIONS: it computes. */
LhDimension lh_step_dimension(const LhOp *op);
