/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run played again with something faster, and what to type into a topology's file for that.
 */
#pragma once

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

/* The run again: the makespan with @resource (kind and tiers) faster, LH_TIME_NEVER on failure. */
LhTime lh_bottleneck_play_faster(const LhSetup *setup, const LhProgram *program,
                                 const LhPathShare *resource, const LhHooks *hooks);

/* What to type into the topology's file for it: "`node.nics.bandwidth` and `node.pcie.bandwidth` to
 * 52.8GB/s"; NULL if it is of no links or latencies. Caller
 * frees. */
char *lh_what_if_edit(const LhTopology *topology, const LhWhatIf *what_if);

/* "compute", "latency", "host", "nic", "pcie+nic", "pcie+nic+latency"; caller frees. */
char *lh_resource_name(uint8_t kind, uint8_t tiers);

/* The makespan on @topology in place of the setup's; LH_TIME_NEVER on failure. */
LhTime lh_what_if_play_on_topology(const LhSetup *setup, const LhProgram *program,
                                   const LhTopology *topology, double protocols,
                                   const LhHooks *hooks);

/* The makespan with @resource faster; LH_TIME_NEVER on failure. */
LhTime lh_what_if_play_raised(const LhSetup *setup, const LhProgram *program,
                              const LhPathShare *resource, double protocols, const LhHooks *hooks);
