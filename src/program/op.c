/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of op kinds, phases, collectives, reductions and masks; the op buffer.
 */
#include "program/op.h"

#include <glib.h>

#define OPS_MIN 16
#define PARTS_MIN 16
#define COUNTS_MIN 16

const char *const lh_op_kind_names[] = {
    [LH_OP_COMPUTE] = "compute",
    [LH_OP_EXCHANGE] = "exchange",
    [LH_OP_COLLECTIVE] = "collective",
    [LH_OP_SYNC] = "sync",
    [LH_OP_ALLOC] = "alloc",
    [LH_OP_FREE] = "free",
    NULL,
};

const char *const lh_phase_names[] = {
    [LH_PHASE_FORWARD] = "forward",
    [LH_PHASE_BACKWARD] = "backward",
    [LH_PHASE_RECOMPUTE] = "recompute",
    [LH_PHASE_OPTIMIZER] = "optimizer",
    NULL,
};

const char *const lh_collective_names[] = {
    [LH_COLL_ALL_GATHER] = "all-gather", [LH_COLL_REDUCE_SCATTER] = "reduce-scatter",
    [LH_COLL_ALL_REDUCE] = "all-reduce", [LH_COLL_ALL_TO_ALL] = "all-to-all",
    [LH_COLL_BROADCAST] = "broadcast",   NULL,
};

const char *const lh_reduction_names[] = {
    [LH_REDUCE_SUM] = "sum",
    [LH_REDUCE_ATTENTION] = "attention",
    NULL,
};

const char *const lh_mask_names[] = {
    [LH_MASK_EMPTY] = "empty",
    [LH_MASK_FULL] = "full",
    [LH_MASK_CAUSAL] = "causal",
    [LH_MASK_POSITIONS] = "positions",
    NULL,
};

void
lh_op_buffer_clear(LhOpBuffer *buffer)
{
    g_free(buffer->ops);
    g_free(buffer->parts);
    g_free(buffer->counts);
    *buffer = (LhOpBuffer){ 0 };
}

/* The capacity for @wanted elements beyond @count, by doubling @capacity. */
static uint32_t
grown(uint32_t capacity, uint32_t count, uint32_t wanted, uint32_t least)
{
    g_assert(wanted <= UINT32_MAX / 2 - count);
    capacity = MAX(capacity, least);
    while (capacity < count + wanted)
        capacity *= 2;
    return capacity;
}

void
lh_op_buffer_reserve(LhOpBuffer *b, uint32_t ops, uint32_t parts, uint32_t counts)
{
    if (ops > b->ops_capacity - b->ops_count) {
        b->ops_capacity = grown(b->ops_capacity, b->ops_count, ops, OPS_MIN);
        b->ops = g_renew(LhOp, b->ops, b->ops_capacity);
    }
    if (parts > b->parts_capacity - b->parts_count) {
        b->parts_capacity = grown(b->parts_capacity, b->parts_count, parts, PARTS_MIN);
        b->parts = g_renew(LhPart, b->parts, b->parts_capacity);
    }
    if (counts > b->counts_capacity - b->counts_count) {
        b->counts_capacity = grown(b->counts_capacity, b->counts_count, counts, COUNTS_MIN);
        b->counts = g_renew(uint32_t, b->counts, b->counts_capacity);
    }
}
