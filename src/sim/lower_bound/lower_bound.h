/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds of the time of a rank, from its program alone: as though every other rank were
 * always ready, no link carried anything else and no kernel shared the device. No simulation of the
 * program ends sooner, whatever the other ranks do. The cost is one walk over the ops of one rank.
 * Several ranks may be walked side by side, each waiting for the others' messages. The bound leaves
 * out: waiting for other ranks, links shared with others, SMs held by communication.
 */
#pragma once

#include "sim/lower_bound/lower_bound_calls.h"

typedef struct _LhLowerBound LhLowerBound;

/* Sums of busy time per stream, and two more: the host, and all kernels together, each weighted by
 * the share of the SMs that it fills. Messages between ranks walked side by side are in no sum. The
 * sum of the first stream includes its waiting for awaited ops (lh_lower_bound_await()). */
enum { LH_LEAST_HOST = LH_STREAMS_MAX, LH_LEAST_SMS, LH_LEAST_SUMS };

typedef struct {
    LhTime path_ps; /* the longest chain of ops of the rank */
    /* For each, the sum of the times of its ops, and the part of it in micro-batch 0, without the
     * optimizer and without what occurs in micro-batch 0 only. Equal layers add equal amounts. */
    LhTime sums_ps[LH_LEAST_SUMS], first_ps[LH_LEAST_SUMS];
    /* Parts of first_ps of stream 0: the forward pass, and the backward pass without
     * recomputation. */
    LhTime forward_ps, backward_ps;
    LhTime accumulate_ps; /* part of backward_ps: accumulating reduced gradients */
    /* Part of first_ps of stream 0: kernels of one layer, without accumulating
     * (lh_lower_bound_watch()). */
    LhTime watched_ps;
} LhLowerBoundTimes;

/* @params as in lh_simulate(), borrowed; sinks and limits are ignored. @calls: cache for this
 * network, borrowed and extended; NULL: none yet. Caller frees. */
LhLowerBound *lh_lower_bound_new(const LhSimParams *params, LhLowerBoundCalls *calls);
void lh_lower_bound_free(LhLowerBound *least);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhLowerBound, lh_lower_bound_free)

/* From now on the first stream's sums include its waiting for ops for which @awaited is true
 * (sim/lower_bound/stream_lower_bound.h). */
void lh_lower_bound_await(LhLowerBound *least, bool (*awaited)(const LhOp *op));

/* From now on @visit is called for each op of a walk, in program order. */
void lh_lower_bound_visit(LhLowerBound *least, void (*visit)(void *data, const LhOp *op),
                          void *data);

/* From now on times include those of the kernels that are labelled with @layer. */
void lh_lower_bound_watch(LhLowerBound *least, uint32_t layer);

/* The times of @rank. Without @communication, messages and collectives take no time. */
LhLowerBoundTimes lh_lower_bound_of(LhLowerBound *least, uint32_t rank, bool communication);

/* Lower bound of the remaining time of @rank after each of its ops (sim/remaining_path.h): an
 * LhTime per op. Caller unrefs. */
GArray *lh_lower_bound_tails(LhLowerBound *least, uint32_t rank);

/*
 * The times of @rank of a program embedded in another one (program/subprogram.h); @map gives the
 * places of its ranks. Its ops may have been issued long before, and all follow the earlier ops of
 * the first stream. Sets *@passes_ps to a lower bound of the time until the first stream may go on
 * after it: that follows all ops that touch inputs or outputs.
 */
LhLowerBoundTimes lh_lower_bound_embedded(LhLowerBound *least, uint32_t rank, LhRankMap map,
                                          bool communication, LhTime *passes_ps);

/* The times of @count ranks that wait for each other's messages, such as one rank of each pipeline
 * stage: the largest of each sum, the longest of their paths. */
LhLowerBoundTimes lh_lower_bound_of_all(LhLowerBound *least, const uint32_t *ranks, uint32_t count);
