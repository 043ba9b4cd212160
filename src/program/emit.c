/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending ops to the buffer of a step. Hot: the simulator pulls millions of ops per second
 * through here, so only fields in use are written, and nothing is allocated once the buffer has
 * grown.
 */
#include "program/emit.h"

#include "program/work.h"

#include <string.h>

static LhOp *
append_op(LhEmitter *e, LhOpKind kind)
{
    LhOpBuffer *b = e->buffer;
    LhOp *op;

    if (G_UNLIKELY(b->ops_count == b->ops_capacity))
        lh_op_buffer_reserve(b, 1, 0, 0);
    op = &b->ops[b->ops_count++];
    op->id = e->state->next_id++;
    op->kind = (uint8_t)kind;
    op->stream = 0;
    op->phase = e->phase;
    op->after_count = 0;
    op->step = e->step;
    op->layer = e->layer;
    op->micro_batch = e->micro_batch;
    op->module = 0;
    op->communicator = e->communicator;
    return op;
}

uint32_t
lh_emit_compute(LhEmitter *e, uint8_t stream, LhKernelId kernel, const LhKernelArgs *args)
{
    LhOp *op = append_op(e, LH_OP_COMPUTE);

    op->stream = stream;
    op->compute.kernel = kernel;
    op->compute.args = *args;
    op->compute.regions_count = 0;
    return op->id;
}

uint32_t
lh_emit_exchange(LhEmitter *e, uint8_t stream)
{
    LhOp *op = append_op(e, LH_OP_EXCHANGE);

    op->stream = stream;
    op->exchange.parts_first = e->buffer->parts_count;
    op->exchange.parts_count = 0;
    return op->id;
}

uint32_t
lh_emit_collective(LhEmitter *e, uint8_t stream, LhCollectiveKind kind, LhGroup group)
{
    LhOp *op = append_op(e, LH_OP_COLLECTIVE);

    op->stream = stream;
    op->collective.kind = kind;
    op->collective.reduction = LH_REDUCE_SUM;
    op->collective.group = group;
    op->collective.tensors_count = 0;
    op->collective.uneven = false;
    op->collective.counts_first = 0;
    op->collective.wire_bytes = 0;
    return op->id;
}

uint32_t
lh_emit_sync(LhEmitter *e)
{
    return append_op(e, LH_OP_SYNC)->id;
}

static uint32_t
append_memory_op(LhEmitter *e, LhOpKind kind, LhRegion region)
{
    LhOp *op = append_op(e, kind);

    op->memory.region = region;
    return op->id;
}

uint32_t
lh_emit_alloc(LhEmitter *e, uint16_t slot)
{
    return lh_emit_alloc_region(e, lh_region_whole(e->program, slot));
}

uint32_t
lh_emit_free(LhEmitter *e, uint16_t slot)
{
    return lh_emit_free_region(e, lh_region_whole(e->program, slot));
}

uint32_t
lh_emit_alloc_region(LhEmitter *e, LhRegion region)
{
    return append_memory_op(e, LH_OP_ALLOC, region);
}

uint32_t
lh_emit_free_region(LhEmitter *e, LhRegion region)
{
    return append_memory_op(e, LH_OP_FREE, region);
}

void
lh_emit_part(LhEmitter *e, bool send, uint32_t peer, uint16_t tag, uint64_t wire_bytes)
{
    LhOpBuffer *b = e->buffer;
    LhPart *part;

    if (G_UNLIKELY(b->parts_count == b->parts_capacity))
        lh_op_buffer_reserve(b, 0, 1, 0);
    part = &b->parts[b->parts_count++];
    part->peer = peer;
    part->tag = tag;
    part->send = send;
    part->regions_count = 0;
    part->wire_bytes = wire_bytes;
    lh_emit_last(e)->exchange.parts_count++;
}

void
lh_emit_tensor(LhEmitter *e, LhRegion send, LhRegion receive)
{
    LhOp *op = lh_emit_last(e);
    const uint32_t tensor = op->collective.tensors_count++;

    g_assert(tensor < LH_COLLECTIVE_TENSORS_MAX);
    op->collective.send[tensor] = send;
    op->collective.receive[tensor] = receive;
    op->collective.wire_bytes += lh_tensor_wire_bytes(e->program, op, tensor);
}

void
lh_emit_tensor_uneven(LhEmitter *e, LhRegion send, LhRegion receive, const uint32_t *sent,
                      const uint32_t *received)
{
    LhOpBuffer *b = e->buffer;
    LhOp *op = lh_emit_last(e);
    const uint32_t members = (uint32_t)lh_group_size(&op->collective.group);

    g_assert(op->collective.kind == LH_COLL_ALL_TO_ALL);
    lh_op_buffer_reserve(b, 0, 0, 2 * members);
    if (!op->collective.uneven) {
        g_assert(op->collective.tensors_count == 0);
        op->collective.uneven = true;
        op->collective.counts_first = b->counts_count;
    }
    memcpy(b->counts + b->counts_count, sent, members * sizeof(*sent));
    memcpy(b->counts + b->counts_count + members, received, members * sizeof(*received));
    b->counts_count += 2 * members;
    lh_emit_tensor(e, send, receive);
}
