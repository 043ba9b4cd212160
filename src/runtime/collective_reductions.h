/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kinds of collectives do that reduce: sums, and merges of attention. Each makes its messages
 * of a round, or finishes one whose messages have arrived; false: the run has failed.
 */
#pragma once

#include "runtime/run_tensor.h"

/* All terms to the member that a slice belongs to, which adds them up. */
bool lh_make_slices(LhRunTensor *t);
bool lh_reduce_slices(LhRunTensor *t);

/* In a ring: a slice goes round, and every member adds its own term. */
bool lh_make_sum(LhRunTensor *t);
bool lh_add_to_sum(LhRunTensor *t);

/* All-reduce: slices are reduced where they belong, then gathered. */
bool lh_make_reduced(LhRunTensor *t);
