/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which elements of the whole model the parts of a step's slots are that stay from one step to the
 * next (LH_SLOT_STATE), and which tokens. Who loads a step or looks at its results needs to know.
 */
#pragma once

#include "step/graph.h"
#include "step/layer_info.h"
#include "step/tensor_sizes.h"

/* A matrix, row by row; vectors have one row. */
typedef struct {
    uint64_t rows, columns;
} LhStepExtent;

/* What a part of a slot that stays holds. */
typedef struct {
    LhStepState state;
    /* Of what belongs to a weight: the tensor-parallel rank's slice of it, its number, and all of
     * it. */
    LhStepMatrix matrix;
    uint32_t slice;
    uint32_t halves; /* of the columns, each of which has all slices: k and v, gates and others */
    LhStepExtent whole;
    /* The part begins with `count` elements of that slice, from `first` on; moments have as many
     * first ones, and behind them the second. What is behind that is nothing. */
    uint64_t first, count;
    /* Of tokens and targets, which are [batch][positions.count]: sequences are numbered over all
     * ranks and micro-batches. */
    uint64_t sequence; /* the first one */
    LhSegment positions;
} LhStepContents;

/* What part @part of slot @slot of @rank holds; false if @program is not a step's or the slot does
 * not stay. */
bool lh_step_contents(const LhProgram *program, uint32_t rank, uint16_t slot, uint32_t part,
                      LhStepContents *contents);

/* A weight of the whole model; 0 x 0: the layer has none, or the head's matrix is the embedding's.
 */
LhStepExtent lh_step_whole(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/* Where element @element of the slice stands in the whole weight; false if nowhere: behind the end
 * of the vocabulary. */
bool lh_step_whole_element(const LhStepContents *contents, uint64_t element, uint64_t *whole);
