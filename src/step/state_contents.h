/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of the slots that persist from one step to the next (LH_SLOT_STATE), and of those that a
 * forward pass alone leaves: which elements of the whole model, or which tokens, each part holds.
 * Needed for loading a step and reading its results.
 */
#pragma once

#include "step/graph.h"
#include "step/layer_info.h"
#include "step/tensor_sizes.h"

/* Extent of a matrix, stored row by row; vectors have one row. */
typedef struct {
    uint64_t rows, columns;
} LhStepExtent;

/* Contents of a part of a permanent slot. */
typedef struct {
    LhStepState state;
    /* For families of a weight: the tensor-parallel rank's slice, its number, and the extent of the
     * whole weight. */
    LhStepMatrix matrix;
    uint32_t slice;
    uint32_t halves; /* blocks of columns, each cut into slices: k and v, gates and others */
    LhStepExtent whole;
    /* The part holds `count` elements of the slice, starting at `first`. Moments hold that many
     * first moments, then as many second ones. The rest of the part is padding. */
    uint64_t first, count;
    /* For tokens and targets, which are [batch][positions.count], and results: sequences are
     * numbered over all ranks and micro-batches. */
    uint64_t sequence; /* first sequence */
    LhSegment positions;
    /* For results: the part holds `count` heads of keys, then of values, or logits of `count`
     * entries of the vocabulary, starting at `first`. */
} LhStepContents;

/* Finds the contents of part @part of slot @slot of @rank; false if @program is not a step's or the
 * slot is not permanent. */
bool lh_step_contents(const LhProgram *program, uint32_t rank, uint16_t slot, uint32_t part,
                      LhStepContents *contents);

/* Extent of a weight of the whole model; 0 x 0: the layer has no such weight, or the head is
 * tied. */
LhStepExtent lh_step_whole(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/* Index of element @element of the slice in the whole weight; false if it is padding after the end
 * of the vocabulary. */
bool lh_step_whole_element(const LhStepContents *contents, uint64_t element, uint64_t *whole);
