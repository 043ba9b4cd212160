/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels whose speed-up provably changes nothing but the times of their own rank until it waits
 * for others, so that no simulation is needed: as a rule, those of a rank whose tensor-parallel
 * peers do the same.
 */
#pragma once

#include "sim/causes/slack.h"

typedef struct {
    uint32_t rank, op;
    bool absorbed; /* the run takes exactly as long if this op alone is faster */
} LhAbsorbed;

/* Sets `absorbed` of @ops (of LhAbsorbed). False: it is not known. For runs whose ranks do not
 * share cores. */
void lh_absorbed_find(const LhSlackGraph *graph, GArray *ops);
