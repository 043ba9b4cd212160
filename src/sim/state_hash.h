/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of where a run is: equal ones are of states from which it goes on alike.
 */
#pragma once

#include "sim/sim_private.h"

/* How far the rank's streams and host are, and what its account of time remembers from @since_ps
 * on. */
uint64_t lh_state_hash_rank(uint64_t hash, const LhEngine *e, const LhSimRank *rank,
                            LhTime since_ps);

/* Ops that are not done, of all ranks. */
uint64_t lh_state_hash(const LhEngine *e);
