/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search by several processes. All of them go through the same rounds and decide alike; the turns
 * of a round go round among them, and what each finds is told to all.
 */
#pragma once

#include "planner/search.h"

/* Those of turns 0 to @turns that are this process's, rising: of guint, caller unrefs. @processes
 * NULL: there is no other process. */
GArray *lh_distributed_search(const LhProcesses *processes, guint turns);

/* What processes agree on beside outcomes. */
typedef struct {
    bool interrupted;     /* one of them is */
    uint64_t limit_bytes; /* the largest that one of them knows */
} LhDistributedSearch;

/*
 * Tells the outcomes [@turns] at @told (of guint, below @turns) to all processes, and puts what the
 * others tell in its place; @deal likewise. Every process must call it. LH_ERROR_RUNTIME: a process
 * is gone, does not answer or is another program.
 */
bool lh_distributed_search_share(const LhProcesses *processes, LhPlanOutcome *outcomes, guint turns,
                                 const GArray *told, LhDistributedSearch *deal, GError **error);
