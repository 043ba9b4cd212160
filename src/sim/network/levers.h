/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levers: every number of a topology file that determines the speed of links, each once, for
 * what-if questions. Paths are those of the file, so that an answer can be entered there.
 */
#pragma once

#include "sim/network/topology.h"

typedef enum {
    LH_LEVER_RATE,    /* bytes/s */
    LH_LEVER_LATENCY, /* LhTime */
    LH_LEVER_SHARE,   /* oversubscription: bandwidth below over above */
} LhLeverKind;

/* For levers that belong to no tier, nor to a set of tiers in eight bits: the bandwidth of
 * collectives, which is independent of the NICs. */
#define LH_LEVER_NO_TIER 8

typedef struct {
    const char *path; /* "node.nics.bandwidth" */
    LhLeverKind kind;
    int tier;       /* LhTier of its links, or LH_LEVER_NO_TIER */
    bool of_levels; /* applies to fabrics whose file has "levels"; other oversubscriptions apply to
                       those without */
    size_t offset;  /* of the value in LhTopology */
} LhLever;

/* Terminated by an entry without a path. Rates of nodes with slower NICs (node.nics.slower) are not
 * included: they are faults, not properties of a cluster. */
extern const LhLever lh_levers[];

/* The levers that apply to @topology: of const LhLever *. Caller unrefs. */
GPtrArray *lh_topology_levers(const LhTopology *topology);

/* The value in the file's unit: bytes/s, seconds, or a number. */
double lh_lever_value(const LhTopology *topology, const LhLever *lever);

/* Makes the lever @factor times as fast: multiplies a rate, divides a latency or an
 * oversubscription. Rates are rounded to whole bytes per second, as in a file. */
void lh_lever_scale(LhTopology *topology, const LhLever *lever, double factor);

/* Scales all levers of @kind whose tier is in @tiers (bits of 1 << tier) likewise. */
#define LH_LEVERS_ALL (~0u)
void lh_levers_scale(LhTopology *topology, LhLeverKind kind, unsigned tiers, double factor);
