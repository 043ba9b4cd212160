/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of the state of a run: runs continue alike from states with equal hashes.
 */
#pragma once

#include "sim/sim_private.h"

/* Hashes the progress of the rank's streams and host, and its time accounting since @since_ps. */
uint64_t lh_state_hash_rank(uint64_t hash, const LhEngine *e, const LhSimRank *rank,
                            LhTime since_ps);

/* Hashes the ops in flight of all ranks. */
uint64_t lh_state_hash(const LhEngine *e);
