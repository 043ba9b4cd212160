/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bottleneck of a run: its critical path by resource, and the savings of faster resources, found by
 * simulating the run again. Definitions: docs/reference/model.md, "Bottlenecks".
 */
#pragma once

#include "compare/what_if.h"

typedef struct {
    LhTime makespan_ps; /* of the run itself */
    GArray *shares;     /* of LhPathShare: the critical path */
    GArray *what_ifs;   /* of LhWhatIf: the bottleneck first, the runner-up second */
} LhBottleneck;

/* Analyses @program on the setup's cluster, simulating with as many threads as @task has jobs (at
 * least 1). NULL if the program cannot run or the analysis was interrupted. Caller frees. */
LhBottleneck *lh_bottleneck_find(const LhSetup *setup, const LhProgram *program,
                                 const LhTask *task);
void lh_bottleneck_free(LhBottleneck *bound);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhBottleneck, lh_bottleneck_free)

/* Time saved by speeding up the resource; 0 if none. */
static inline LhTime
lh_what_if_saved(const LhBottleneck *bound, const LhWhatIf *what_if)
{
    return MAX(bound->makespan_ps - what_if->makespan_ps, 0);
}

/* The same as a share of the makespan; negative if the run gets slower. */
static inline double
lh_what_if_share(const LhBottleneck *bound, const LhWhatIf *what_if)
{
    return (double)(bound->makespan_ps - what_if->makespan_ps) / (double)MAX(bound->makespan_ps, 1);
}
