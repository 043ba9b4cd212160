/*
 * Explicit programs in memory, read through the same cursor as generated ones.
 */
#include "sched/explicit.h"

#include <string.h>

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

const char *const lh_role_names[] = {
    [LH_SLOT_TEMP] = "temp",
    [LH_SLOT_INPUT] = "input",
    [LH_SLOT_OUTPUT] = "output",
    NULL,
};

const char *const lh_stream_kind_names[] = {
    [LH_STREAM_COMPUTE] = "compute",
    [LH_STREAM_COMM] = "comm",
    NULL,
};

void
lh_explicit_free(LhExplicit *explicit_ops)
{
    if (explicit_ops == NULL)
        return;
    for (uint32_t rank = 0; rank < explicit_ops->ranks_count; rank++) {
        g_free(explicit_ops->ranks[rank].ops);
        g_free(explicit_ops->ranks[rank].parts);
    }
    g_free(explicit_ops->ranks);
    g_free(explicit_ops);
}

static void
reserve(LhOpBuffer *buffer, uint32_t ops, uint32_t parts)
{
    if (ops > buffer->ops_capacity) {
        buffer->ops_capacity = ops;
        buffer->ops = g_renew(LhOp, buffer->ops, ops);
    }
    if (parts > buffer->parts_capacity) {
        buffer->parts_capacity = parts;
        buffer->parts = g_renew(LhPart, buffer->parts, parts);
    }
}

bool
lh_explicit_step(LhCursor *cursor, LhOpBuffer *buffer)
{
    const LhExplicit *all = cursor->program->explicit_ops;
    const LhExplicitRank *rank;
    uint32_t end = cursor->next_id, parts_first = 0, parts_end = 0;
    bool any_parts = false;

    if (all == NULL || cursor->rank >= all->ranks_count)
        return false;
    rank = &all->ranks[cursor->rank];
    if (cursor->next_id >= rank->ops_count)
        return false;
    for (; end < rank->ops_count; end++) {
        const LhOp *first = &rank->ops[cursor->next_id];
        const LhOp *op = &rank->ops[end];

        if (op->phase != first->phase || op->step != first->step)
            break;
        if (op->kind != LH_OP_EXCHANGE)
            continue;
        if (!any_parts)
            parts_first = op->exchange.parts_first;
        any_parts = true;
        parts_end = op->exchange.parts_first + op->exchange.parts_count;
    }
    buffer->ops_count = end - cursor->next_id;
    buffer->parts_count = parts_end - parts_first;
    reserve(buffer, buffer->ops_count, buffer->parts_count);
    memcpy(buffer->ops, &rank->ops[cursor->next_id], buffer->ops_count * sizeof(LhOp));
    if (buffer->parts_count > 0)
        memcpy(buffer->parts, &rank->parts[parts_first], buffer->parts_count * sizeof(LhPart));
    for (uint32_t i = 0; i < buffer->ops_count; i++) {
        if (buffer->ops[i].kind == LH_OP_EXCHANGE)
            buffer->ops[i].exchange.parts_first -= parts_first;
    }
    cursor->next_id = end;
    cursor->step++;
    return true;
}

uint64_t
lh_explicit_pairs(LhMaskKind mask, int64_t shift, uint64_t nq, uint64_t nk)
{
    if (mask == LH_MASK_EMPTY)
        return 0;
    return mask == LH_MASK_FULL ? nq * nk : lh_causal_pairs(nq, nk, shift);
}
