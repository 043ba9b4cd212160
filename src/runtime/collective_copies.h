/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of the collectives that only copy: all-gathers, all-to-alls and broadcasts. Each function
 * makes the messages of a round; false if the run has failed.
 */
#pragma once

#include "runtime/run_tensor.h"

/* Exchanges with every other member at once. */
bool lh_make_copies(LhRunTensor *t);

/* All-to-all with one partner per round. */
bool lh_make_pair(LhRunTensor *t);

/* Passes on the block received last, at first this rank's own. */
bool lh_pass_block(LhRunTensor *t);

/* Ring all-gather: sends this rank's own block, then those received. */
bool lh_gather_in_ring(LhRunTensor *t);

/* Broadcast as a chain in group order: receive from the previous member, send to the next. */
bool lh_make_from_before(LhRunTensor *t);
bool lh_make_to_next(LhRunTensor *t);
