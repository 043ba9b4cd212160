/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a generator uses to write the ops of a step. Ops are appended in program order; `after`
 * edges are given as marks: small numbered registers in the cursor that remember the id of an op of
 * an earlier step.
 */
#pragma once

#include "program/cursor.h"

struct _LhEmitter {
    const LhProgram *program;
    LhOpBuffer *buffer;
    LhCursorState *state;
    LhEmbeddedState *embedded;
    uint32_t *marks; /* of the state */
    uint32_t rank;
    /* Written into every op; the generator sets what it knows better. */
    uint32_t step; /* the cursor's, at first */
    uint8_t phase; /* LH_PHASE_FORWARD, at first */
    uint16_t layer, micro_batch;
    uint8_t communicator; /* of exchanges and collectives */
};

/* Appends an op of the given kind and returns its id. Its fields beyond the header are the caller's
 * to fill through lh_emit_last(). */
uint32_t lh_emit_compute(LhEmitter *e, uint8_t stream, LhKernelId kernel, const LhKernelArgs *args);
uint32_t lh_emit_exchange(LhEmitter *e, uint8_t stream); /* parts follow by lh_emit_part */
uint32_t lh_emit_collective(LhEmitter *e, uint8_t stream, LhCollectiveKind kind,
                            LhGroup group); /* tensors follow by lh_emit_tensor */
uint32_t lh_emit_sync(LhEmitter *e);

/* Of all parts of a slot, or of some. */
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
void lh_emit_operand(LhEmitter *e, uint16_t slot, uint32_t part, uint32_t count);

/* Appends a message to the last exchange; regions follow by lh_emit_region. */
void lh_emit_part(LhEmitter *e, bool send, uint32_t peer, uint16_t tag, uint64_t wire_bytes);
void lh_emit_region(LhEmitter *e, uint16_t slot, uint32_t part, uint32_t count);
void lh_emit_part_region(LhEmitter *e, LhRegion region); /* likewise; perhaps of one half */

/* Adds a tensor to the last collective. */
void lh_emit_tensor(LhEmitter *e, LhRegion send, LhRegion receive);

/* Adds a tensor to the last all-to-all, of which @sent[i] parts go to member i of the group and
 * @received[i] come from it. All tensors of a call are added this way, or none. */
void lh_emit_tensor_uneven(LhEmitter *e, LhRegion send, LhRegion receive, const uint32_t *sent,
                           const uint32_t *received);

/* The last op must come after op @id; LH_OP_NONE and ids already listed are ignored. */
void lh_emit_after(LhEmitter *e, uint32_t id);
