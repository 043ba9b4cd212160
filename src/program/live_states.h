/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live memory of many ranks. Ranks that allocate and free the same in the same order have the same
 * memory, so it is kept once for all of them, and each change is computed once. A state has a
 * number; it stays the same while some rank is in it.
 */
#pragma once

#include "program/live.h"

typedef struct _LhLiveStates LhLiveStates;

/* For @ranks ranks of @program, which is borrowed. Few ranks have a state each, since looking for
 * equal ones would cost more than it saves. Caller frees. */
LhLiveStates *lh_live_states_new(const LhProgram *program, uint32_t ranks);
void lh_live_states_free(LhLiveStates *states);

/* Returns the state of @rank before the first op: lh_live_init(). */
uint32_t lh_live_states_begin(LhLiveStates *states, uint32_t rank);

/* Takes a rank from state @from to that after lh_live_change(), which is returned. Sets @peak to
 * its result. */
uint32_t lh_live_states_change(LhLiveStates *states, uint32_t from, LhRegion region, bool alloc,
                               bool *peak);

/* The memory of ranks in @state. Valid until the next change. */
const LhLive *lh_live_states_get(const LhLiveStates *states, uint32_t state);

/* Number of states in memory, and the largest number so far plus one of a state. */
uint32_t lh_live_states_count(const LhLiveStates *states);
uint32_t lh_live_states_end(const LhLiveStates *states);
