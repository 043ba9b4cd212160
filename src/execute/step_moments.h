/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moments as an executed step has stored them: in fp32, in 16 bits, or as codes in blocks.
 */
#pragma once

#include "execute/step_numerics.h"
#include "kernels/call.h"

/* A stored number, and the bounds of what it was rounded from. */
typedef struct {
    double value, low, high;
} LhStoredNumber;

/* Moments of a part of a slot; borrowed from the result. */
typedef struct {
    const unsigned char *data;
    const unsigned char *scales; /* of the blocks; NULL: no codes */
    enum lh_storage storage;
    uint64_t count; /* parameters */
} LhStepMoments;

/* The moments that @rank holds in part @part of slot @slot, with these contents. */
LhStepMoments lh_step_moments(const LhProgram *program, const LhRunResult *result, uint32_t rank,
                              uint16_t slot, uint32_t part, const LhStepContents *contents);

/* First and second moment of parameter @i of the part. */
LhStoredNumber lh_step_moments_first(const LhStepMoments *moments, uint64_t i);
LhStoredNumber lh_step_moments_second(const LhStepMoments *moments, uint64_t i);

typedef struct {
    double low, high;
} LhStepBounds;

/* Distance of two intervals: 0 if they overlap, NaN if a bound is. */
double lh_step_bounds_apart(LhStepBounds a, LhStepBounds b);

/* Bounds of Adam's first update of a weight of which the first moment is between @low and @high. */
LhStepBounds lh_step_moments_update(const LhModelShape *shape, double low, double high);

/* By how much the two moments of the first gradient contradict each other, as a difference of
 * gradients; *@size is the size of the gradient. */
double lh_step_moments_disagree(const LhModelShape *shape, const LhStoredNumber *first,
                                const LhStoredNumber *second, double *size);

/* Whether moments of the step are rounded to less than fp32; and how the reference stores the
 * states of @program. */
bool lh_step_moments_are_rounded(const LhProgram *program);
LhModelStates lh_step_model_states(const LhProgram *program);

/*
 * Sets @blocks[i], for every element i of a weight of the model, to a number of the block of 8-bit
 * moments that it is stored in; returns the number of blocks.
 */
uint32_t lh_step_moments_blocks(const LhProgram *program, LhStepWeight weight, uint32_t layer,
                                uint32_t *blocks);
