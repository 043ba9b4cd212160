/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bound of the time of any schedule.
 */
#pragma once

#include "scenario/setup.h"

typedef struct {
    LhTime compute_ps; /* all flops at the best rates that the device's kernels reach anywhere */
    /*
     * Bytes that must enter the nodes / bandwidth of their NICs, for a plain mask and equal shares
     * of the tokens, on a network whose messages share links. 0: unknown.
     */
    LhTime cut_ps;
    double cut_bytes; /* of all nodes, per direction */
    /* Likewise for groups of nodes and the trunks of the fabric; 0: none. */
    LhTime trunk_ps;
    LhTime bound_ps; /* the largest of these */
} LhSynthBound;

/* The setup has passed lh_synth_check(). */
LhSynthBound lh_synth_bound(const LhSetup *setup);

/*
 * The minimum total traffic of @count groups of nodes (@sizes: nodes per group; equal ones
 * adjacent), in units of one node's tokens, if each group computes its share of the pairs of a full
 * or a @causal mask. A row that is not at home costs @row, a column @column. @tokens: per node.
 */
double lh_synth_cut(const uint32_t *sizes, uint32_t count, uint64_t tokens, bool causal, double row,
                    double column);
