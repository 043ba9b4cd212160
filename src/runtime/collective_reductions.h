/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of the collectives that reduce: sums, and merges of attention. Each function makes the
 * messages of a round, or finishes a round whose messages have arrived; false if the run has
 * failed.
 */
#pragma once

#include "runtime/run_tensor.h"

/* Sends every slice's term to the slice's owner, which reduces them. */
bool lh_make_slices(LhRunTensor *t);
bool lh_reduce_slices(LhRunTensor *t);

/* Ring: a slice passes around, and every member adds its own term. */
bool lh_make_sum(LhRunTensor *t);
bool lh_add_to_sum(LhRunTensor *t);

/* All-reduce: gathers the slices that their owners have reduced. */
bool lh_make_reduced(LhRunTensor *t);
