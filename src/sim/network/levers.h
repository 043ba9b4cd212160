/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every number of a topology file that says how fast its links are, each once: what one may turn to
 * ask what would be if. The paths are those of the file, so that an answer can be typed in.
 */
#pragma once

#include "sim/network/topology.h"

typedef enum {
    LH_LEVER_RATE,    /* bytes/s */
    LH_LEVER_LATENCY, /* LhTime */
    LH_LEVER_SHARE,   /* oversubscription: what is below over what is above */
} LhLeverKind;

/* A lever that moves with no tier, nor with a set of them in eight bits: what collectives reach,
 * whatever the NICs are. */
#define LH_LEVER_NO_TIER 8

typedef struct {
    const char *path; /* "node.nics.bandwidth" */
    LhLeverKind kind;
    int tier;       /* LhTier of its links, or LH_LEVER_NO_TIER */
    bool of_levels; /* of a fabric whose file has "levels"; other shares are of those without */
    size_t offset;  /* of its value in LhTopology */
} LhLever;

/* Ended by an entry without a path. Left out: the rates of nodes whose NICs are slower than those
 * of the others (node.nics.slower), which are faults rather than what a cluster is. */
extern const LhLever lh_levers[];

/* Those that @topology has: of const LhLever *. Caller unrefs. */
GPtrArray *lh_topology_levers(const LhTopology *topology);

/* As the file has it: bytes/s, seconds, or a number. */
double lh_lever_value(const LhTopology *topology, const LhLever *lever);

/* Makes it @factor times as fast: a rate that many times as high, a latency or an oversubscription
 * that many times as low. Rates are whole bytes per second, as a file would say them. */
void lh_lever_scale(LhTopology *topology, const LhLever *lever, double factor);

/* Likewise all that it has of @kind and of @tiers, bits of 1 << tier. */
#define LH_LEVERS_ALL (~0u)
void lh_levers_scale(LhTopology *topology, LhLeverKind kind, unsigned tiers, double factor);
