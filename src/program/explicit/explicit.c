/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explicit programs in memory, read through the same cursor as generated ones.
 */
#include "program/explicit/explicit.h"

#include "program/emit.h"

#include <string.h>

void
lh_explicit_free(gpointer explicit_ops)
{
    LhExplicit *all = explicit_ops;

    if (all == NULL)
        return;
    for (uint32_t rank = 0; rank < all->ranks_count; rank++) {
        g_free(all->ranks[rank].ops);
        g_free(all->ranks[rank].parts);
        g_free(all->ranks[rank].counts);
    }
    g_free(all->ranks);
    g_free(all);
}

static uint32_t
steps(const LhProgram *program, uint32_t rank)
{
    const LhExplicit *all = program->plan;

    return all->ranks[rank].steps_count;
}

/* Appends the messages and counts of an op to the buffer's. */
static void
copy_lists(LhOpBuffer *buffer, const LhExplicitRank *rank, LhOp *op)
{
    if (op->kind == LH_OP_EXCHANGE) {
        const uint32_t count = op->exchange.parts_count;

        lh_op_buffer_reserve(buffer, 0, count, 0);
        memcpy(buffer->parts + buffer->parts_count, rank->parts + op->exchange.parts_first,
               count * sizeof(LhPart));
        op->exchange.parts_first = buffer->parts_count;
        buffer->parts_count += count;
    } else if (op->kind == LH_OP_COLLECTIVE && op->collective.uneven) {
        const uint32_t count =
            2 * (uint32_t)lh_group_size(&op->collective.group) * op->collective.tensors_count;

        lh_op_buffer_reserve(buffer, 0, 0, count);
        memcpy(buffer->counts + buffer->counts_count, rank->counts + op->collective.counts_first,
               count * sizeof(uint32_t));
        op->collective.counts_first = buffer->counts_count;
        buffer->counts_count += count;
    }
}

static void
emit(LhEmitter *e, uint32_t step)
{
    const LhExplicit *all = e->program->plan;
    const LhExplicitRank *rank = &all->ranks[e->rank];
    const LhOp *first = &rank->ops[e->state->next_id];
    const LhOp *end = rank->ops + rank->ops_count;
    LhOpBuffer *buffer = e->buffer;

    (void)step;
    for (const LhOp *op = first; op < end && op->phase == first->phase && op->step == first->step;
         op++) {
        lh_op_buffer_reserve(buffer, 1, 0, 0);
        buffer->ops[buffer->ops_count] = *op;
        copy_lists(buffer, rank, &buffer->ops[buffer->ops_count++]);
        e->state->next_id++;
    }
}

const LhGenerator lh_explicit_generator = {
    .steps = steps,
    .emit = emit,
    .of_all_groups = true,
};

uint64_t
lh_explicit_pairs(LhMaskKind mask, int64_t shift, uint64_t nq, uint64_t nk)
{
    if (mask == LH_MASK_EMPTY)
        return 0;
    return mask == LH_MASK_FULL ? nq * nk : lh_causal_pairs(nq, nk, shift);
}
