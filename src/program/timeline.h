/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of one op in a timeline. Simulator and runtime produce the same record, so that every
 * report works on both.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

/* Tier of an op that uses no network, or a network without tiers. */
#define LH_TIMELINE_NO_TIER UINT8_MAX

/* Interval in which bytes of an op are in flight. */
typedef struct {
    LhTime from_ps, to_ps;
} LhMotion;

typedef struct {
    uint32_t rank;
    uint32_t op;
    uint8_t kind; /* LhOpKind */
    uint8_t stream;
    uint8_t phase;
    uint8_t tier; /* exchange: highest tier used by any of its messages; LH_TIERS or above: none */
    uint32_t step;
    uint16_t layer, micro_batch;
    uint16_t module;
    LhKernelId kernel; /* compute */
    LhTime issued_ps, start_ps, end_ps;
    uint64_t bytes; /* sent */
    uint64_t flops;
    /* exchange, collective: disjoint, ordered intervals in which its bytes are in flight; in the
     * rest of its time the op waits for others. NULL: unknown. Valid during the sink's call. */
    const LhMotion *motions;
    uint32_t motions_count;
} LhTimelineRecord;

/* How long the op waited for others between its start and its end; 0 if unknown. */
static inline LhTime
lh_timeline_waited(const LhTimelineRecord *r)
{
    LhTime waited_ps = r->end_ps - r->start_ps;

    for (uint32_t i = 0; i < r->motions_count; i++)
        waited_ps -= r->motions[i].to_ps - r->motions[i].from_ps;
    return r->motions == NULL ? 0 : waited_ps;
}

/* For g_array_sort(): by rank, then by op. */
static inline int
lh_timeline_by_rank_and_op(const void *a, const void *b)
{
    const LhTimelineRecord *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* Called when an op completes, in completion order. */
typedef void (*LhTimelineSink)(void *data, const LhTimelineRecord *record);

/* An op that allocates or frees memory, for reports. */
typedef struct {
    uint32_t op; /* its id; LH_OP_NONE: memory live before the first op */
    uint16_t layer, micro_batch;
    uint16_t phase;    /* LhPhase */
    uint16_t category; /* LhCategory of its slot; LH_CATEGORIES: several */
} LhMemoryOp;

/* Live memory of a rank after an alloc or a free. */
typedef struct {
    uint32_t rank;
    LhTime time_ps; /* host time */
    LhMemoryOp op;
    /* A slot in host memory: op.category is LH_CATEGORIES, category_bytes are those on the host. */
    bool on_host;
    uint64_t category_bytes; /* of op.category */
    uint64_t bytes;          /* of all categories, on the device */
} LhMemoryRecord;

/*
 * Called at every alloc and free, for each rank in host order and so in order of time. Memory live
 * before the first op is reported first: a record at time 0 for each category in use.
 */
typedef void (*LhMemorySink)(void *data, const LhMemoryRecord *record);
