/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What-ifs: a run simulated again with a faster resource, and the edit of the topology file for it.
 */
#pragma once

#include "scenario/setup_simulate.h"

/* Flag in the tiers of a what-if: latencies are shortened as well. */
#define LH_WITH_LATENCY (1u << LH_TIERS)

/* A run simulated again with one resource LH_WHAT_IF_FACTOR times as fast. */
typedef struct {
    uint8_t kind;   /* LhPathStepKind */
    uint8_t tiers;  /* for LINKS: tiers sped up together, one bit per LhTier, and LH_WITH_LATENCY */
    LhTime path_ps; /* time on the critical path in steps that wait for nothing else */
    LhTime makespan_ps;
    /* Lower and upper bound of the saving, as a share of the makespan: it is not known how much
     * protocol time of measured collectives scales with links. Computed for the first two only. */
    double least_share, most_share;
} LhWhatIf;

/* Makespan with @resource (kind and tiers) faster; LH_TIME_NEVER on failure. */
LhTime lh_bottleneck_play_faster(const LhSetup *setup, const LhProgram *program,
                                 const LhPathShare *resource, const LhHooks *hooks);

/* Edit of the topology file for it: "`node.nics.bandwidth` and `node.pcie.bandwidth` to 52.8GB/s";
 * NULL if it is neither of links nor of latencies. Caller frees. */
char *lh_what_if_edit(const LhTopology *topology, const LhWhatIf *what_if);

/* "compute", "latency", "host", "nic", "pcie+nic", "pcie+nic+latency"; caller frees. */
char *lh_resource_name(uint8_t kind, uint8_t tiers);

/* Makespan on @topology instead of the setup's; LH_TIME_NEVER on failure. */
LhTime lh_what_if_play_on_topology(const LhSetup *setup, const LhProgram *program,
                                   const LhTopology *topology, double protocols,
                                   const LhHooks *hooks);

/* Makespan with @resource faster; LH_TIME_NEVER on failure. */
LhTime lh_what_if_play_raised(const LhSetup *setup, const LhProgram *program,
                              const LhPathShare *resource, double protocols, const LhHooks *hooks);
