/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the program of a rank is read to be exported, and its waits.
 */
#pragma once

#include "scenario/setup.h"
#include "sim/cost/cost.h"

/*
 * Reads the ops of streams of one rank after the other. An op waits for the one before it on its
 * stream, for those that it names, and behind a sync of the host for all before that. Left out: the
 * time that a host takes to launch, and how far it may be ahead.
 */
typedef struct {
    const LhSetup *setup;
    const LhProgram *program;
    LhSimParams params;
    LhCost cost;
    LhOpBuffer buffer; /* of the present step */
    uint32_t rank;
    double slowdown;                /* of its kernels */
    GByteArray *streams;            /* by op: its stream, or what is none */
    uint32_t last[LH_STREAMS_MAX];  /* op of each stream, or LH_OP_NONE */
    uint32_t gates[LH_STREAMS_MAX]; /* the same, when the host synchronised last */
    uint32_t gated;                 /* bits: streams that have not waited for those yet */
    uint32_t waits[LH_STREAMS_MAX]; /* of the present op: at most one for each stream */
    uint32_t waits_count;
} LhExportWalk;

/* What it points to must stay until lh_export_walk_clear(). */
void lh_export_walk_init(LhExportWalk *walk, const LhSetup *setup, const LhProgram *program);
void lh_export_walk_clear(LhExportWalk *walk);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhExportWalk, lh_export_walk_clear)

/* Tells @tell of all ops of @rank that run on a stream, until it says false. */
bool lh_export_walk_rank(LhExportWalk *walk, uint32_t rank,
                         bool (*tell)(void *data, const LhOp *op, GError **error), void *data,
                         GError **error);

/* What the kernel of the present op takes alone. */
LhTime lh_export_kernel_ps(LhExportWalk *walk, const LhOp *op);
