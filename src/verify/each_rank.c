/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/each_rank.h"

#include "verify/layer_boundary.h"
#include "verify/posting_order.h"
#include "verify/verify_private.h"

/* The ops of the current rank so far. Each step goes through the stages while it is in the caches.
 */
typedef struct {
    LhProof proof; /* of this rank only; its arrays are those below */
    LhProgramSize *size;
    LhUnrolled unrolled;
    GArray *op_rank, *part_op, *position; /* of uint32_t */
    GArray *clocks;                       /* [streams_count] each */
    LhOpBuffer buffer;
    LhRankClocks rank_clocks;
    LhPostingOrder posted;
    bool calls; /* some op so far is a collective */
    LhRaceCheck *races;
    LhMemoryCheck *memory;
} RankCheck;

static void
begin_rank(RankCheck *check, uint32_t rank)
{
    const LhUnrolled *u = &check->unrolled;

    g_array_set_size(u->ops, 0);
    g_array_set_size(u->parts, 0);
    g_array_set_size(u->counts, 0);
    check->proof.rank_first[rank] = 0;
    check->calls = false;
    lh_clocks_begin(&check->rank_clocks);
    lh_posting_order_begin(&check->posted);
    lh_race_check_begin(check->races);
    lh_memory_check_begin(check->memory, rank);
}

static uint32_t *
grow(GArray *array, uint32_t count)
{
    g_array_set_size(array, count);
    return (uint32_t *)(void *)array->data;
}

/* Appends the step in the buffer to the ops of the rank. */
static LhOpRange
append_step(RankCheck *check, uint32_t rank)
{
    const LhUnrolled *u = &check->unrolled;
    LhProof *proof = &check->proof;
    LhOpRange ops = { .first = u->ops->len };

    lh_unrolled_add(u, &check->buffer);
    ops.end = u->ops->len;
    proof->rank_first[rank + 1] = ops.end;
    proof->ops = (LhOp *)(void *)u->ops->data;
    proof->parts = (LhPart *)(void *)u->parts->data;
    proof->counts = (uint32_t *)(void *)u->counts->data;
    proof->ops_count = u->ops->len;
    proof->parts_count = u->parts->len;
    proof->op_rank = grow(check->op_rank, proof->ops_count);
    proof->part_op = grow(check->part_op, proof->parts_count);
    proof->position = grow(check->position, proof->ops_count);
    proof->clocks = grow(check->clocks, proof->ops_count);
    lh_proof_index_ops(proof, rank, ops);
    return ops;
}

static void
measure_step(RankCheck *check)
{
    const LhOpBuffer *buffer = &check->buffer;
    LhProgramSize *size = check->size;

    size->ops += buffer->ops_count;
    size->parts += buffer->parts_count;
    size->counts += buffer->counts_count;
    size->step_ops = MAX(size->step_ops, buffer->ops_count);
    size->step_parts = MAX(size->step_parts, buffer->parts_count);
    size->step_counts = MAX(size->step_counts, buffer->counts_count);
}

static bool
is_small(const LhProgramSize *size)
{
    return size->ops <= LH_VERIFY_OPS_MAX && size->parts <= LH_VERIFY_PARTS_MAX &&
           size->counts <= LH_VERIFY_PARTS_MAX;
}

/* Whether every message of a step, from @part on, belongs to one exchange, in the order of these.
 */
static bool
owns_its_parts(const LhProof *proof, LhOpRange ops, uint32_t part)
{
    for (uint32_t g = ops.first; g < ops.end; g++) {
        const LhOp *op = &proof->ops[g];

        if (op->kind != LH_OP_EXCHANGE)
            continue;
        if (op->exchange.parts_first != part)
            return false;
        part += op->exchange.parts_count;
    }
    return part == proof->parts_count;
}

static bool
check_step(RankCheck *check, uint32_t rank)
{
    LhProof *proof = &check->proof;
    const uint32_t parts = check->unrolled.parts->len;
    LhOpRange ops;

    measure_step(check);
    if (!is_small(check->size))
        return false;
    ops = append_step(check, rank);
    if (!owns_its_parts(proof, ops, parts))
        return false;
    lh_proof_check_form(proof, ops);
    if (proof->verdict->findings_total > 0)
        return false;
    lh_clocks_add(proof, &check->rank_clocks, rank, ops);
    if (!lh_posting_order_add(&check->posted, proof, ops))
        return false;
    lh_race_check_add(check->races, ops);
    lh_memory_check_add(check->memory, ops);
    lh_proof_count_work(proof, ops);
    lh_boundary_scan(proof, ops);
    for (uint32_t g = ops.first; g < ops.end; g++)
        check->calls |= proof->ops[g].kind == LH_OP_COLLECTIVE;
    return proof->verdict->findings_total == 0;
}

static bool
check_rank(RankCheck *check, uint32_t rank)
{
    LhProof *proof = &check->proof;
    LhCursor cursor;

    begin_rank(check, rank);
    lh_cursor_init(&cursor, proof->program, rank);
    while (lh_cursor_step(&cursor, &check->buffer)) {
        if (!check_step(check, rank))
            return false;
    }
    append_step(check, rank); /* the buffer is empty; a rank may have no steps */
    if (check->calls)
        lh_proof_check_order_of_calls(proof);
    lh_memory_check_end(check->memory, rank);
    return proof->verdict->findings_total == 0;
}

bool
lh_proof_check_each_rank(LhProof *proof, LhProgramSize *size)
{
    const guint clock_bytes = proof->program->streams_count * (guint)sizeof(uint32_t);
    RankCheck check = { .proof = *proof,
                        .size = size,
                        .op_rank = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                        .part_op = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                        .position = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                        .clocks = g_array_new(FALSE, FALSE, clock_bytes) };
    uint32_t rank = 0;

    *size = (LhProgramSize){ 0 };
    lh_unrolled_init(&check.unrolled);
    check.races = lh_race_check_new(&check.proof);
    check.memory = lh_memory_check_new(&check.proof);
    while (rank < proof->ranks && check_rank(&check, rank))
        rank++;
    proof->projects = check.proof.projects;
    proof->computes_layer = check.proof.computes_layer;
    lh_unrolled_clear(&check.unrolled);
    lh_op_buffer_clear(&check.buffer);
    lh_posting_order_clear(&check.posted);
    lh_race_check_free(check.races);
    lh_memory_check_free(check.memory);
    g_array_unref(check.op_rank);
    g_array_unref(check.part_op);
    g_array_unref(check.position);
    g_array_unref(check.clocks);
    return rank == proof->ranks;
}
