/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier's view of one rank's buffers: no two conflicting accesses without an order. Only the
 * rank's own order counts (streams, `after`, sync): an order that exists merely because of what
 * another rank does, or because a host can run ahead only so far, is not relied on.
 */
#include "verify/verify_private.h"

/* Who touched a cell last. Streams are in order, so the last reader of each stream stands for all
 * of them. */
typedef struct {
    uint32_t writer;
    uint16_t streams; /* bit set of those that have a reader since the last write */
    uint32_t readers[LH_STREAMS_MAX];
} CellUse;

G_STATIC_ASSERT(LH_STREAMS_MAX <= 16);

struct LhRaceCheck {
    LhProof *proof;
    CellUse *cells; /* of the current rank */
    /* The last answer about an order: the parts of a region mostly have been used alike. */
    uint32_t earlier, later;
    bool ordered;
};

/* Asks again, or counts the same question once more. */
static bool
is_ordered(LhRaceCheck *check, uint32_t earlier, uint32_t later)
{
    if (earlier == check->earlier && later == check->later) {
        check->proof->verdict->orders_checked++;
        return check->ordered;
    }
    check->earlier = earlier;
    check->later = later;
    check->ordered = lh_proof_ordered(check->proof, earlier, later);
    return check->ordered;
}

/* One access of an op to the cell in question. */
typedef struct {
    uint32_t op;
    bool write;
} Access;

static void
find_race(LhProof *proof, Access now, Access before, uint32_t slot, uint32_t part)
{
    g_autofree char *cell = lh_cell_text(proof->program, slot, part);
    g_autofree char *name = lh_op_text(proof->program, &proof->ops[before.op]);
    const uint32_t rank = proof->op_rank[now.op];
    const uint32_t first = proof->rank_first[rank];

    lh_proof_find(proof, LH_FINDING_RACE,
                  (LhFindingPlace){ rank, now.op, (int32_t)slot, before.op },
                  "%s slot %s while %s may still be %s it: nothing orders op %u after op %u",
                  now.write ? "writes" : "reads", cell, name, before.write ? "writing" : "reading",
                  now.op - first, before.op - first);
}

static void
find_overlap(LhProof *proof, uint32_t g, uint32_t slot, uint32_t part, bool both_write)
{
    g_autofree char *cell = lh_cell_text(proof->program, slot, part);

    lh_proof_find(proof, LH_FINDING_RACE,
                  (LhFindingPlace){ proof->op_rank[g], g, (int32_t)slot, g }, "%s slot %s %s",
                  both_write ? "writes" : "reads and writes", cell,
                  both_write ? "twice" : "at the same time");
}

/* Whether an op may read and write a cell at once: a kernel that works in place, as form.c has
 * seen, and a collective; messages have no order. */
static bool
may_work_in_place(const LhOp *op)
{
    return op->kind != LH_OP_EXCHANGE;
}

static void
read_cell(LhRaceCheck *check, uint32_t g, uint32_t slot, uint32_t part, CellUse *use)
{
    LhProof *proof = check->proof;
    const LhOp *op = &proof->ops[g];

    if (use->writer == g) {
        if (!may_work_in_place(op))
            find_overlap(proof, g, slot, part, false);
    } else if (use->writer != LH_NONE && !is_ordered(check, use->writer, g)) {
        find_race(proof, (Access){ g, false }, (Access){ use->writer, true }, slot, part);
    }
    use->readers[op->stream] = g;
    use->streams |= (uint16_t)(1u << op->stream);
}

static void
write_cell(LhRaceCheck *check, uint32_t g, uint32_t slot, uint32_t part, CellUse *use)
{
    LhProof *proof = check->proof;
    const LhOp *op = &proof->ops[g];

    if (use->writer == g)
        find_overlap(proof, g, slot, part, true);
    else if (use->writer != LH_NONE && !is_ordered(check, use->writer, g))
        find_race(proof, (Access){ g, true }, (Access){ use->writer, true }, slot, part);
    for (uint32_t streams = use->streams; streams != 0; streams &= streams - 1) {
        const uint32_t reader = use->readers[__builtin_ctz(streams)];

        if (reader == g) {
            if (!may_work_in_place(op))
                find_overlap(proof, g, slot, part, false);
        } else if (!is_ordered(check, reader, g)) {
            find_race(proof, (Access){ g, true }, (Access){ reader, false }, slot, part);
        }
    }
    use->streams = 0;
    use->writer = g;
}

static void
touch(LhRaceCheck *check, uint32_t g, const LhRegion *region, bool write)
{
    CellUse *use = &check->cells[check->proof->program->slots[region->slot].first_cell];

    for (uint32_t part = region->part; part < region->part + region->count; part++) {
        if (write)
            write_cell(check, g, region->slot, part, &use[part]);
        else
            read_cell(check, g, region->slot, part, &use[part]);
    }
}

/* Reads first, so that what a kernel updates in place is one read and one write. */
static void
touch_compute(LhRaceCheck *check, uint32_t g)
{
    const LhOp *op = &check->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        if (kernel->operands[i].access == LH_OPERAND_READ)
            touch(check, g, &op->compute.regions[i], false);
    }
    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        if (kernel->operands[i].access != LH_OPERAND_READ)
            touch(check, g, &op->compute.regions[i], true);
    }
}

static void
touch_exchange(LhRaceCheck *check, uint32_t g)
{
    const LhProof *proof = check->proof;
    const LhOp *op = &proof->ops[g];

    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &proof->parts[op->exchange.parts_first + i];

        for (uint32_t k = 0; k < part->regions_count; k++)
            touch(check, g, &part->regions[k], !part->send);
    }
}

/* Tensor @i of a collective is read where some tensor of it is written. */
static void
check_overlaps(LhRaceCheck *check, uint32_t g, uint32_t i)
{
    const LhProof *proof = check->proof;
    const LhOp *op = &proof->ops[g];
    const LhCollectiveCall call = lh_collective_call(op, proof->counts, proof->op_rank[g]);
    const LhRegion *send = &op->collective.send[i];

    for (uint32_t k = 0; k < op->collective.tensors_count; k++) {
        const LhRegion *receive = &op->collective.receive[k];

        if (lh_regions_overlap(send, receive) && (i != k || !lh_collective_is_in_place(&call, i)))
            find_overlap(check->proof, g, send->slot, MAX(send->part, receive->part), false);
    }
}

static void
touch_collective(LhRaceCheck *check, uint32_t g)
{
    const LhOp *op = &check->proof->ops[g];

    for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
        check_overlaps(check, g, i);
        touch(check, g, &op->collective.send[i], false);
    }
    for (uint32_t i = 0; i < op->collective.tensors_count; i++)
        touch(check, g, &op->collective.receive[i], true);
}

LhRaceCheck *
lh_race_check_new(LhProof *proof)
{
    LhRaceCheck *check = g_new0(LhRaceCheck, 1);

    check->proof = proof;
    check->cells = g_new0(CellUse, MAX(proof->cells_count, 1));
    return check;
}

void
lh_race_check_free(LhRaceCheck *check)
{
    g_free(check->cells);
    g_free(check);
}

void
lh_race_check_begin(LhRaceCheck *check)
{
    check->earlier = LH_NONE;
    for (uint32_t i = 0; i < check->proof->cells_count; i++) {
        check->cells[i].writer = LH_NONE;
        check->cells[i].streams = 0;
    }
}

void
lh_race_check_add(LhRaceCheck *check, LhOpRange ops)
{
    for (uint32_t g = ops.first; g < ops.end; g++) {
        const LhOp *op = &check->proof->ops[g];

        if (op->kind == LH_OP_COMPUTE)
            touch_compute(check, g);
        else if (op->kind == LH_OP_EXCHANGE)
            touch_exchange(check, g);
        else if (op->kind == LH_OP_COLLECTIVE)
            touch_collective(check, g);
    }
}

void
lh_proof_check_races(LhProof *proof)
{
    LhRaceCheck *check = lh_race_check_new(proof);

    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        lh_race_check_begin(check);
        lh_race_check_add(check, lh_proof_ops_of(proof, rank));
    }
    lh_race_check_free(check);
}
