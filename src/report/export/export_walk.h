/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a rank's program with its dependencies, for export.
 */
#pragma once

#include "scenario/setup.h"
#include "sim/cost/cost.h"

/*
 * Reads the stream ops of one rank after another. An op waits for the previous op on its stream,
 * for the ops it names and, after a host sync, for all ops before that. Left out: the host's launch
 * time, and how far it may run ahead.
 */
typedef struct {
    const LhSetup *setup;
    const LhProgram *program;
    LhSimParams params;
    LhCost cost;
    LhOpBuffer buffer; /* of the current step */
    uint32_t rank;
    double slowdown;                /* factor on its kernels */
    GByteArray *streams;            /* by op: its stream, or the value for none */
    uint32_t last[LH_STREAMS_MAX];  /* last op of each stream, or LH_OP_NONE */
    uint32_t gates[LH_STREAMS_MAX]; /* the same at the last host sync */
    uint32_t gated;                 /* bits: streams that have not waited for the last sync yet */
    uint32_t waits[LH_STREAMS_MAX]; /* of the current op: at most one per stream */
    uint32_t waits_count;
} LhExportWalk;

/* Starts a walk; the arguments must stay until lh_export_walk_clear(). */
void lh_export_walk_init(LhExportWalk *walk, const LhSetup *setup, const LhProgram *program);
void lh_export_walk_clear(LhExportWalk *walk);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhExportWalk, lh_export_walk_clear)

/* Calls @tell for all ops of @rank that run on a stream, until it returns false. */
bool lh_export_walk_rank(LhExportWalk *walk, uint32_t rank,
                         bool (*tell)(void *data, const LhOp *op, GError **error), void *data,
                         GError **error);

/* Duration of the current op's kernel when it runs alone. */
LhTime lh_export_kernel_ps(LhExportWalk *walk, const LhOp *op);
