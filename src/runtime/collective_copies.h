/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kinds of collectives do that only copy: all-gathers, all-to-alls and broadcasts. Each makes
 * its messages of a round; false: the run has failed.
 */
#pragma once

#include "runtime/run_tensor.h"

/* To every other member at once. */
bool lh_make_copies(LhRunTensor *t);

/* All-to-all: with one partner in each round. */
bool lh_make_pair(LhRunTensor *t);

/* Passes on the block that has come last, this rank's own at first. */
bool lh_pass_block(LhRunTensor *t);

/* An all-gather: this rank's own block, then those that came. */
bool lh_gather_in_ring(LhRunTensor *t);

/* A broadcast is a chain in the order of the group. */
bool lh_make_from_before(LhRunTensor *t);
bool lh_make_to_next(LhRunTensor *t);
