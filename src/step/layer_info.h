/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be asked about a step without its program: names, and where its layers and weights are.
 */
#pragma once

#include "step/graph.h"

const char *lh_step_role_name(LhStepRole role);
const char *lh_step_weight_name(LhStepWeight weight);

uint32_t lh_step_layers(const LhStepPlan *plan);

/* The place among all chunks of that with a layer. */
uint32_t lh_step_chunk_of(const LhStepPlan *plan, uint32_t layer);

/* The pipeline stage that has a layer; the head is on that of the layer behind the last. */
uint32_t lh_step_stage_of(const LhStepPlan *plan, uint32_t layer);
/* Whether a stage has a weight: that of one of its layers; the first one the embedding, the last
 * one the head with its norm, or the embedding once more, where they are one matrix. */
bool lh_step_stage_has(const LhStepPlan *plan, uint32_t stage, LhStepWeight weight, uint32_t layer);
/* Whether several stages have it. */
bool lh_step_is_shared(const LhStepPlan *plan, LhStepWeight weight);
LhStepKind lh_step_layer_kind(const LhStepPlan *plan, uint32_t layer);

/* Segments of a context-parallel rank, and tokens of it in a micro-batch, of all sequences. */
uint32_t lh_step_segments(const LhStepPlan *plan);
uint64_t lh_step_rank_rows(const LhStepPlan *plan);

/* What part @part of a slot that stays is; false: @slot is none of a step, or @rank has it not. */
typedef struct {
    LhStepFamily family;
    LhStepWeight weight; /* of those that belong to one */
    uint32_t layer;
    uint32_t part; /* of the tensor */
} LhStepState;
bool lh_step_state_at(const LhStepPlan *plan, uint32_t rank, uint32_t slot, uint32_t part,
                      LhStepState *state);
