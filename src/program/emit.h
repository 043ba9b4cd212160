/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emitter: how a generator writes the ops of a step. Ops are appended in program order. `after`
 * edges are given as marks: small numbered registers in the cursor that hold the id of an op of an
 * earlier step.
 */
#pragma once

#include "program/cursor.h"

struct _LhEmitter {
    const LhProgram *program;
    LhOpBuffer *buffer;
    LhCursorState *state;
    LhEmbeddedState *embedded;
    uint32_t *marks; /* those of @state */
    uint32_t rank;
    /* Defaults written into every op; the generator changes them as needed. */
    uint32_t step; /* initially the cursor's */
    uint8_t phase; /* initially LH_PHASE_FORWARD */
    uint16_t layer, micro_batch;
    uint8_t communicator; /* of exchanges and collectives */
};

/* Appends an op of the given kind and returns its id. The caller fills the kind's own fields
 * through lh_emit_last(). */
uint32_t lh_emit_compute(LhEmitter *e, uint8_t stream, LhKernelId kernel, const LhKernelArgs *args);
uint32_t lh_emit_exchange(LhEmitter *e, uint8_t stream); /* add messages with lh_emit_part */
uint32_t lh_emit_collective(LhEmitter *e, uint8_t stream, LhCollectiveKind kind,
                            LhGroup group); /* add tensors with lh_emit_tensor */
uint32_t lh_emit_sync(LhEmitter *e);

/* Allocates or frees all parts of a slot, or one region. */
uint32_t lh_emit_alloc(LhEmitter *e, uint16_t slot);
uint32_t lh_emit_free(LhEmitter *e, uint16_t slot);
uint32_t lh_emit_alloc_region(LhEmitter *e, LhRegion region);
uint32_t lh_emit_free_region(LhEmitter *e, LhRegion region);

/* The op appended last. Valid until the next lh_emit_ call. */
static inline LhOp *
lh_emit_last(LhEmitter *e)
{
    return &e->buffer->ops[e->buffer->ops_count - 1];
}

/* Adds an operand to the last compute op (in the kernel's operand order). */
static inline void
lh_emit_operand(LhEmitter *e, uint16_t slot, uint32_t part, uint32_t count)
{
    LhOp *op = lh_emit_last(e);

    g_assert(op->compute.regions_count < LH_KERNEL_OPERANDS_MAX);
    op->compute.regions[op->compute.regions_count++] =
        (LhRegion){ .slot = slot, .part = part, .count = count };
}

/* Appends a message to the last exchange; add its regions with lh_emit_region. */
void lh_emit_part(LhEmitter *e, bool send, uint32_t peer, uint16_t tag, uint64_t wire_bytes);

/* Adds a region to the last message. The first function's may name one half. */
static inline void
lh_emit_part_region(LhEmitter *e, LhRegion region)
{
    LhPart *p = &e->buffer->parts[e->buffer->parts_count - 1];

    g_assert(p->regions_count < LH_PART_REGIONS_MAX);
    p->regions[p->regions_count++] = region;
}

static inline void
lh_emit_region(LhEmitter *e, uint16_t slot, uint32_t part, uint32_t count)
{
    lh_emit_part_region(e, (LhRegion){ .slot = slot, .part = part, .count = count });
}

/* Adds a tensor to the last collective. */
void lh_emit_tensor(LhEmitter *e, LhRegion send, LhRegion receive);

/* Adds a tensor to the last all-to-all: @sent[i] parts go to member i of the group and
 * @received[i] parts come from it. All tensors of a call are added this way, or none. */
void lh_emit_tensor_uneven(LhEmitter *e, LhRegion send, LhRegion receive, const uint32_t *sent,
                           const uint32_t *received);

/* Orders the last op after op @id. Ignores LH_OP_NONE and ids already listed. */
static inline void
lh_emit_after(LhEmitter *e, uint32_t id)
{
    LhOp *op = lh_emit_last(e);

    if (id == LH_OP_NONE)
        return;
    for (unsigned i = 0; i < op->after_count; i++) {
        if (op->after[i] == id)
            return;
    }
    g_assert(op->after_count < LH_OP_AFTER_MAX);
    op->after[op->after_count++] = id;
}
