/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison with the reference at sampled tokens instead of all, at a cost of O(S N d) for S
 * tokens instead of O(N^2 d).
 *
 * o, lse and dq of a token follow from the inputs alone. dk and dv of a token need lse and delta of
 * every query that sees it. These are taken from the run itself, delta from its o; the sampled
 * tokens verify them. If the schedule has no lse output, dk and dv are compared for one randomly
 * drawn key-value head only, whose lse is computed: O(N^2 d) for each query head that shares it.
 */
#pragma once

#include "reference/numerics.h"

/*
 * Creates inputs and draws @tokens tokens of each rank of this process in @place, with all heads:
 * the first, the last and random others by @seed, or all if the rank has no more. The pass must not
 * be LH_PASS_BWD, whose inputs are results of all tokens. Caller frees.
 */
LhNumerics *lh_row_sample_new(const LhProgram *program, uint64_t seed, LhInputKind inputs,
                              uint32_t tokens, const LhControlPlace *place);

/*
 * Computes the reference of these tokens, after @result; every process of @control calls it.
 * Returns false with @error (LH_ERROR_RUNTIME) if the exchange between processes fails.
 */
bool lh_row_sample_refer(LhNumerics *numerics, const LhProgram *program, const LhRunResult *result,
                         const LhOpenControl *control, GError **error);
