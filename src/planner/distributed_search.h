/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search by several processes. All go through the same rounds and make the same decisions; each
 * process evaluates every n-th point of a round, and results are all-gathered.
 */
#pragma once

#include "planner/search.h"

/* The turns of 0 to @turns - 1 that this process takes, in ascending order: of guint, caller
 * unrefs. @processes NULL: all of them. */
GArray *lh_distributed_search(const LhProcesses *processes, guint turns);

/* State that processes agree on in addition to outcomes. */
typedef struct {
    bool interrupted;     /* some process was interrupted */
    uint64_t limit_bytes; /* the largest of all processes */
} LhDistributedSearch;

/*
 * Sends the outcomes at @told (indices of guint, below @turns) to all processes and receives theirs
 * into @outcomes; @deal likewise. Collective: every process must call it. LH_ERROR_RUNTIME if a
 * process is gone, does not answer, or is another program.
 */
bool lh_distributed_search_share(const LhProcesses *processes, LhPlanOutcome *outcomes, guint turns,
                                 const GArray *told, LhDistributedSearch *deal, GError **error);
