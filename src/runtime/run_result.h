/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of a run: the output slots of its ranks, and counters.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

/* Collective algorithms, implemented in run_collective.c. */
typedef enum {
    LH_WAY_DIRECT,   /* directly to every destination; broadcasts as a chain */
    LH_WAY_RING,     /* all-gathers and reductions in a ring, in group order; the rest direct */
    LH_WAY_PAIRWISE, /* all-to-alls with one partner per step; the rest as ring */
    LH_WAY_NATIVE, /* by the library of the links; all-to-alls and merges of attention are direct */
} LhCollectiveWay;

/* Counters of a rank. */
typedef struct {
    uint64_t bytes_sent; /* in messages that arrived */
    uint64_t messages;   /* sent */
    uint64_t flops;      /* of called attention kernels */
    uint64_t peak_bytes; /* peak memory of its slots, in host order */
    uint64_t ops;
    LhTime busy_ps;   /* time with at least one kernel running */
    LhTime finish_ps; /* when its last op completed */
} LhRunRank;

typedef struct {
    bool whole; /* false in processes other than the first, which have only their own ranks' results
                 */
    uint32_t ranks_count;
    LhRunRank *ranks; /* owned */
    unsigned char *
        *outputs; /* [ranks], owned: output slots and persistent slots in order of declaration;
                     outside the first process NULL for ranks of other processes */
    uint64_t output_bytes; /* per rank */
    LhTime makespan_ps;
    LhCollectiveWay collectives; /* the algorithms used */
} LhRunResult;

void lh_run_result_free(LhRunResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhRunResult, lh_run_result_free)

/* Part @part of @slot, an output or persistent slot of @rank; borrowed. */
const unsigned char *lh_run_output(const LhRunResult *result, const LhProgram *program,
                                   uint32_t rank, uint16_t slot, uint32_t part);

/* Bytes of the output and persistent slots among the first @slots slots of the program. */
uint64_t lh_run_output_bytes(const LhProgram *program, uint32_t slots);
