/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run leaves: the output slots of its ranks, and what was counted while they ran.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

/* How collectives are made of messages; run_collective.c has them. */
typedef enum {
    LH_WAY_DIRECT, /* straight to every destination; broadcasts in a chain */
    LH_WAY_RING, /* gathers and reductions in a ring, in the order of the group; the rest direct */
    LH_WAY_PAIRWISE, /* all-to-alls step by step, with a partner each; the rest as in a ring */
    LH_WAY_NATIVE,   /* by the library of the links; all-to-alls and merges of attention direct */
} LhCollectiveWay;

/* What was counted while a rank ran. */
typedef struct {
    uint64_t bytes_sent; /* of messages that arrived */
    uint64_t messages;   /* sent */
    uint64_t flops;      /* of attention kernels that were called */
    uint64_t peak_bytes; /* of its slots, in host order */
    uint64_t ops;
    LhTime busy_ps;   /* some kernel was running */
    LhTime finish_ps; /* when its last op was complete */
} LhRunRank;

typedef struct {
    bool whole; /* false in processes other than the first: they have their own ranks' alone */
    uint32_t ranks_count;
    LhRunRank *ranks;        /* owned */
    unsigned char **outputs; /* [ranks], owned: the output slots, and those that stay, in the order
                                of declaration; NULL of ranks that this process does not have,
                                unless it is the first */
    uint64_t output_bytes;   /* of one rank */
    LhTime makespan_ps;
    LhCollectiveWay collectives; /* as they were made */
} LhRunResult;

void lh_run_result_free(LhRunResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhRunResult, lh_run_result_free)

/* Part @part of @slot of @rank, an output slot or one that stays; borrowed. */
const unsigned char *lh_run_output(const LhRunResult *result, const LhProgram *program,
                                   uint32_t rank, uint16_t slot, uint32_t part);

/* Bytes of the output slots, and of those that stay, among the first @slots of the program. */
uint64_t lh_run_output_bytes(const LhProgram *program, uint32_t slots);
