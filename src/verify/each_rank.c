/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/each_rank.h"

#include "verify/layer_boundary.h"
#include "verify/verify_private.h"

/* The ops of the current rank. */
typedef struct {
    LhProof proof; /* of this rank only; its arrays are those below */
    LhUnrolled unrolled;
    GArray *op_rank, *part_op; /* of uint32_t */
    LhOpBuffer buffer;
} RankCheck;

static bool
unroll_rank(RankCheck *check, uint32_t rank, LhProgramSize *size)
{
    const LhUnrolled *u = &check->unrolled;
    const LhOpBuffer *buffer = &check->buffer;
    LhCursor cursor;

    g_array_set_size(u->ops, 0);
    g_array_set_size(u->parts, 0);
    g_array_set_size(u->counts, 0);
    lh_cursor_init(&cursor, check->proof.program, rank);
    while (lh_cursor_step(&cursor, &check->buffer)) {
        if (!lh_unrolled_fits(u, buffer))
            return false;
        lh_unrolled_add(u, buffer);
        size->step_ops = MAX(size->step_ops, buffer->ops_count);
        size->step_parts = MAX(size->step_parts, buffer->parts_count);
        size->step_counts = MAX(size->step_counts, buffer->counts_count);
    }
    size->ops += u->ops->len;
    size->parts += u->parts->len;
    size->counts += u->counts->len;
    return size->ops <= LH_VERIFY_OPS_MAX && size->parts <= LH_VERIFY_PARTS_MAX &&
           size->counts <= LH_VERIFY_PARTS_MAX;
}

static void
index_rank(RankCheck *check, uint32_t rank)
{
    const LhUnrolled *u = &check->unrolled;
    LhProof *proof = &check->proof;

    proof->first_rank = rank;
    proof->end_rank = rank + 1;
    proof->rank_first[rank] = 0;
    proof->rank_first[rank + 1] = u->ops->len;
    proof->ops = (LhOp *)(void *)u->ops->data;
    proof->parts = (LhPart *)(void *)u->parts->data;
    proof->counts = (uint32_t *)(void *)u->counts->data;
    proof->ops_count = u->ops->len;
    proof->parts_count = u->parts->len;
    g_array_set_size(check->op_rank, proof->ops_count);
    g_array_set_size(check->part_op, proof->parts_count);
    proof->op_rank = (uint32_t *)(void *)check->op_rank->data;
    proof->part_op = (uint32_t *)(void *)check->part_op->data;
    lh_proof_index_ops(proof);
}

/* Whether every message belongs to one exchange, in the order of these. */
static bool
owns_its_parts(const LhProof *proof)
{
    uint32_t next = 0;

    for (uint32_t g = 0; g < proof->ops_count; g++) {
        const LhOp *op = &proof->ops[g];

        if (op->kind != LH_OP_EXCHANGE)
            continue;
        if (op->exchange.parts_first != next)
            return false;
        next += op->exchange.parts_count;
    }
    return next == proof->parts_count;
}

static bool
check_rank(RankCheck *check, uint32_t rank, LhProgramSize *size)
{
    LhProof *proof = &check->proof;
    const uint64_t *found = &proof->verdict->findings_total;

    if (!unroll_rank(check, rank, size))
        return false;
    index_rank(check, rank);
    if (!owns_its_parts(proof))
        return false;
    lh_proof_check_form(proof);
    if (*found > 0)
        return false;
    g_clear_pointer(&proof->clocks, g_free);
    g_clear_pointer(&proof->position, g_free);
    lh_proof_make_clocks(proof);
    lh_proof_check_order_of_calls(proof);
    lh_proof_check_races(proof);
    lh_proof_check_memory(proof);
    lh_proof_count_work(proof);
    lh_boundary_scan(proof);
    return *found == 0;
}

bool
lh_proof_check_each_rank(LhProof *proof, LhProgramSize *size)
{
    RankCheck check = { .proof = *proof,
                        .op_rank = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                        .part_op = g_array_new(FALSE, FALSE, sizeof(uint32_t)) };
    uint32_t rank = 0;

    *size = (LhProgramSize){ 0 };
    lh_unrolled_init(&check.unrolled);
    while (rank < proof->ranks && check_rank(&check, rank, size))
        rank++;
    proof->projects = check.proof.projects;
    proof->computes_layer = check.proof.computes_layer;
    lh_unrolled_clear(&check.unrolled);
    lh_op_buffer_clear(&check.buffer);
    g_array_unref(check.op_rank);
    g_array_unref(check.part_op);
    g_free(check.proof.clocks);
    g_free(check.proof.position);
    return rank == proof->ranks;
}
