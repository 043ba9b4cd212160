/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two traffic patterns as longhaul programs, to compare the engine with other simulators. ring: P
 * steps; in each, a rank computes, sends to p+1 and receives from p-1, and waits for all three.
 * bal: P/2 steps t = 1..P/2; the same with p+t and p-t.
 */
#pragma once

#include "sim/sim.h"

typedef struct {
    bool bal;
    uint32_t ranks;
    uint32_t steps; /* 0: all */
    double compute_s;
    double jitter;  /* compute times are compute_s (1 + jitter u), u in [-1, 1) by a hash of (rank,
                       step) */
    uint64_t bytes; /* per message */
} LhPattern;

/* The pattern's program; caller frees. @pattern must outlive it. */
LhProgram *lh_pattern_program(LhPattern *pattern);

/* LhSimParams.compute_time with an LhPattern as @data. */
LhTime lh_pattern_compute_time(void *data, uint32_t rank, const LhOp *op);
