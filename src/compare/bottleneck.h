/*
 * What binds a run: which part of its critical path waits for what, and what making that faster
 * would save, found by playing the run again. Definitions: docs/model.md, "What binds a run".
 */
#pragma once

#include "scenario/setup.h"
#include "scenario/setup_simulate.h"

/* Beside the tiers of a what-if: latencies are shortened, too. */
#define LH_WITH_LATENCY (1u << LH_TIERS)

/* The run again, with one resource LH_WHAT_IF_FACTOR times as fast. */
typedef struct {
    uint8_t kind; /* LhPathStepKind */
    uint8_t
        tiers; /* LINKS: links that are raised together, a bit for each LhTier, LH_WITH_LATENCY */
    LhTime path_ps; /* of the critical path: its steps that wait for nothing else */
    LhTime makespan_ps;
    /* Of the makespan what is saved, at least and at most: it is not known how much of what
     * protocols take of measured collectives goes with links. Asked of the first two only. */
    double least_share, most_share;
} LhWhatIf;

typedef struct {
    LhTime makespan_ps; /* of the run as it is */
    GArray *shares;     /* of LhPathShare: the critical path */
    GArray *what_ifs;   /* of LhWhatIf: what binds the run comes first, the runner-up second */
} LhBottleneck;

/* Of @program on the setup's cluster; up to @threads (at least 1) play it, and call @hooks'
 * progress one at a time. NULL if it cannot end or was interrupted. Caller frees. */
LhBottleneck *lh_bottleneck_find(const LhSetup *setup, const LhProgram *program, guint threads,
                                 const LhHooks *hooks);
void lh_bottleneck_free(LhBottleneck *bound);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhBottleneck, lh_bottleneck_free)

/* The run again: the makespan with @resource (kind and tiers) faster, LH_TIME_NEVER on failure. */
LhTime lh_bottleneck_play_faster(const LhSetup *setup, const LhProgram *program,
                                 const LhPathShare *resource, const LhHooks *hooks);

/* What raising the resource saves; 0 if nothing. */
static inline LhTime
lh_what_if_saved(const LhBottleneck *bound, const LhWhatIf *what_if)
{
    return MAX(bound->makespan_ps - what_if->makespan_ps, 0);
}

/* The same as a share of the makespan; less than 0 if it takes longer. */
static inline double
lh_what_if_share(const LhBottleneck *bound, const LhWhatIf *what_if)
{
    return (double)(bound->makespan_ps - what_if->makespan_ps) / (double)MAX(bound->makespan_ps, 1);
}

/* What to type into the topology's file for it: "`node.nics.bandwidth` and `node.pcie.bandwidth` to
 * 52.8GB/s"; NULL if it is of no links or latencies. Caller
 * frees. */
char *lh_what_if_edit(const LhTopology *topology, const LhWhatIf *what_if);

/* "compute", "latency", "host", "nic", "pcie+nic", "pcie+nic+latency"; caller frees. */
char *lh_resource_name(uint8_t kind, uint8_t tiers);
