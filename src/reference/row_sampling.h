/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results held against the reference at some tokens instead of all of them, at a cost of O(S N d)
 * for S tokens instead of O(N^2 d).
 *
 * o, lse and dq of a token come from the inputs alone. dk and dv of a token need lse and delta of
 * every query that sees it: these are the run's own, delta from its o, for whose being right the
 * tokens drawn vouch. Where lse is no output of the schedule, dk and dv are checked of one
 * key-value head, drawn too, whose lse is computed: O(N^2 d) for each of the query heads that share
 * it.
 */
#pragma once

#include "reference/numerics.h"

/*
 * Inputs, and a choice of @tokens tokens of each rank of this process in @place, all heads of them:
 * its first and its last one, and others by @seed, all of a rank if it has no more. The pass is not
 * LH_PASS_BWD, whose inputs are results of all tokens. Caller frees.
 */
LhNumerics *lh_row_sample_new(const LhProgram *program, uint64_t seed, LhInputKind inputs,
                              uint32_t tokens, const LhControlPlace *place);

/* The reference of these tokens, after @result; every process of @control calls it. False with
 * @error (LH_ERROR_RUNTIME) if the processes cannot tell each other. */
bool lh_row_sample_refer(LhNumerics *numerics, const LhProgram *program, const LhRunResult *result,
                         const LhOpenControl *control, GError **error);
