/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no schedule is faster than, whoever computes what and in which order.
 */
#pragma once

#include "scenario/setup.h"

typedef struct {
    LhTime compute_ps; /* all flops at the best rates that the device's kernels reach anywhere */
    /*
     * The bytes that must come into the nodes, over what their NICs take: of a plain mask and equal
     * shares of the tokens, on a network whose messages share links. 0: nothing is known.
     */
    LhTime cut_ps;
    double cut_bytes; /* of all nodes, per direction */
    /* Likewise into groups of nodes, over what the trunks of the fabric take; 0: there are none. */
    LhTime trunk_ps;
    LhTime bound_ps; /* the largest */
} LhSynthBound;

/* The setup passes lh_synth_check(). */
LhSynthBound lh_synth_bound(const LhSetup *setup);

/*
 * The least traffic of all of @count groups of nodes (@sizes: how many; equal ones one after
 * another), in the tokens of one node, if each has its share of the pairs of a full or a @causal
 * mask: a row that is not at home costs @row, a column @column. @tokens: of one node.
 */
double lh_synth_cut(const uint32_t *sizes, uint32_t count, uint64_t tokens, bool causal, double row,
                    double column);
