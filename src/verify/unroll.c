/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/unroll.h"

#include "program/work.h"

void
lh_unrolled_init(LhUnrolled *u)
{
    u->ops = g_array_new(FALSE, FALSE, sizeof(LhOp));
    u->parts = g_array_new(FALSE, FALSE, sizeof(LhPart));
    u->counts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
}

void
lh_unrolled_clear(LhUnrolled *u)
{
    g_clear_pointer(&u->ops, g_array_unref);
    g_clear_pointer(&u->parts, g_array_unref);
    g_clear_pointer(&u->counts, g_array_unref);
}

void
lh_unrolled_move(LhOp *op, const LhOpBuffer *buffer, uint32_t parts_first, uint32_t counts_first)
{
    if (op->kind == LH_OP_EXCHANGE) {
        /* Messages outside the buffer are dropped; the form check reports the empty exchange. */
        if ((uint64_t)op->exchange.parts_first + op->exchange.parts_count > buffer->parts_count)
            op->exchange.parts_count = 0;
        op->exchange.parts_first += parts_first;
    } else if (op->kind == LH_OP_COLLECTIVE && op->collective.uneven) {
        const uint64_t members = MIN(lh_group_size(&op->collective.group), UINT32_MAX);
        const uint64_t count = 2 * members * op->collective.tensors_count;

        /* Likewise counts: the form check reports a collective without tensors. */
        if (op->collective.counts_first + count > buffer->counts_count)
            op->collective.tensors_count = 0;
        op->collective.counts_first += counts_first;
    }
}

void
lh_unrolled_add(const LhUnrolled *u, const LhOpBuffer *buffer)
{
    const uint32_t first = u->ops->len;
    const uint32_t parts_first = u->parts->len, counts_first = u->counts->len;

    if (buffer->ops_count > 0)
        g_array_append_vals(u->ops, buffer->ops, buffer->ops_count);
    for (uint32_t i = first; i < u->ops->len; i++)
        lh_unrolled_move(&g_array_index(u->ops, LhOp, i), buffer, parts_first, counts_first);
    if (buffer->parts_count > 0)
        g_array_append_vals(u->parts, buffer->parts, buffer->parts_count);
    if (buffer->counts_count > 0)
        g_array_append_vals(u->counts, buffer->counts, buffer->counts_count);
}

bool
lh_unrolled_fits(const LhUnrolled *u, const LhOpBuffer *buffer)
{
    return buffer->ops_count <= LH_VERIFY_OPS_MAX - u->ops->len &&
           buffer->parts_count <= LH_VERIFY_PARTS_MAX - u->parts->len &&
           buffer->counts_count <= LH_VERIFY_PARTS_MAX - u->counts->len;
}

void
lh_proof_index_ops(LhProof *proof, uint32_t rank, LhOpRange ops)
{
    for (uint32_t g = ops.first; g < ops.end; g++) {
        const LhOp *op = &proof->ops[g];

        proof->op_rank[g] = rank;
        for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++)
            proof->part_op[op->exchange.parts_first + i] = g;
    }
}

void
lh_proof_count_work(LhProof *proof, LhOpRange ops)
{
    LhVerdict *verdict = proof->verdict;

    for (uint32_t g = ops.first; g < ops.end; g++) {
        const LhOp *op = &proof->ops[g];
        const uint32_t rank = proof->op_rank[g];

        verdict->flops[rank] += lh_op_flops(op);
        verdict->bytes_sent[rank] +=
            lh_op_bytes_sent(proof->program, op, proof->parts, proof->counts, rank);
    }
}
