/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier's view of one rank's buffers: no two conflicting accesses without an order. Only the
 * rank's own order counts (streams, `after`, sync): an order that exists merely because of what
 * another rank does, or because a host can run ahead only so far, is not relied on.
 */
#include "verify/verify_private.h"

#include <string.h>

/* From so many parts on, keeping the answer about one costs less than asking about the next. */
#define MANY_PARTS 4

/* Who touched a cell last. Streams are in order, so the last reader of each stream stands for all
 * of them. */
typedef struct {
    uint32_t writer;
    uint16_t streams; /* bit set of those that have a reader since the last write */
} CellUse;

G_STATIC_ASSERT(LH_STREAMS_MAX <= 16);

/* The answer about the part before: parts of a region mostly have been used alike. */
typedef struct {
    CellUse use; /* before the access */
    uint32_t readers[LH_STREAMS_MAX];
    uint64_t asked; /* orders */
    bool clean;     /* nothing was found */
} Answer;

struct LhRaceCheck {
    LhProof *proof;
    CellUse *cells;    /* of the current rank */
    uint32_t *readers; /* [cells * streams] those that CellUse.streams lists */
};

static uint32_t *
readers_of(const LhRaceCheck *check, uint32_t cell)
{
    return &check->readers[(size_t)cell * check->proof->program->streams_count];
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
check_read(LhRaceCheck *check, uint32_t g, uint32_t slot, uint32_t part)
{
    LhProof *proof = check->proof;
    const uint32_t writer = check->cells[proof->program->slots[slot].first_cell + part].writer;

    if (writer == g) {
        if (!may_work_in_place(&proof->ops[g]))
            find_overlap(proof, g, slot, part, false);
    } else if (writer != LH_NONE && !lh_proof_ordered(proof, writer, g)) {
        find_race(proof, (Access){ g, false }, (Access){ writer, true }, slot, part);
    }
}

static void
check_write(LhRaceCheck *check, uint32_t g, uint32_t slot, uint32_t part)
{
    LhProof *proof = check->proof;
    const uint32_t cell = proof->program->slots[slot].first_cell + part;
    const CellUse *use = &check->cells[cell];

    if (use->writer == g)
        find_overlap(proof, g, slot, part, true);
    else if (use->writer != LH_NONE && !lh_proof_ordered(proof, use->writer, g))
        find_race(proof, (Access){ g, true }, (Access){ use->writer, true }, slot, part);
    for (uint32_t streams = use->streams; streams != 0; streams &= streams - 1) {
        const uint32_t reader = readers_of(check, cell)[__builtin_ctz(streams)];

        if (reader == g) {
            if (!may_work_in_place(&proof->ops[g]))
                find_overlap(proof, g, slot, part, false);
        } else if (!lh_proof_ordered(proof, reader, g)) {
            find_race(proof, (Access){ g, true }, (Access){ reader, false }, slot, part);
        }
    }
}

/* Checks an access and keeps the answer, with what it depends on: a read does on the writer
 * alone. */
static void
ask(LhRaceCheck *check, uint32_t g, uint32_t slot, uint32_t part, bool write, Answer *answer)
{
    const LhProof *proof = check->proof;
    const uint32_t cell = proof->program->slots[slot].first_cell + part;
    const uint64_t asked = proof->verdict->orders_checked;
    const uint64_t found = proof->verdict->findings_total;

    (write ? check_write : check_read)(check, g, slot, part);
    answer->use = check->cells[cell];
    memcpy(answer->readers, readers_of(check, cell),
           proof->program->streams_count * sizeof(uint32_t));
    answer->asked = proof->verdict->orders_checked - asked;
    answer->clean = proof->verdict->findings_total == found;
}

/* Whether the same access to @cell has the same answer. */
static bool
has_answer(const LhRaceCheck *check, uint32_t cell, bool write, const Answer *answer)
{
    const CellUse *use = &check->cells[cell];

    if (!answer->clean || use->writer != answer->use.writer)
        return false;
    if (!write)
        return true;
    if (use->streams != answer->use.streams)
        return false;
    for (uint32_t streams = use->streams; streams != 0; streams &= streams - 1) {
        const uint32_t stream = (uint32_t)__builtin_ctz(streams);

        if (readers_of(check, cell)[stream] != answer->readers[stream])
            return false;
    }
    return true;
}

static void
note_access(LhRaceCheck *check, uint32_t g, uint32_t cell, bool write)
{
    const uint32_t stream = check->proof->ops[g].stream;

    if (write) {
        check->cells[cell] = (CellUse){ .writer = g };
        return;
    }
    readers_of(check, cell)[stream] = g;
    check->cells[cell].streams |= (uint16_t)(1u << stream);
}

static void
touch_many(LhRaceCheck *check, uint32_t g, const LhRegion *region, bool write)
{
    const uint32_t first = check->proof->program->slots[region->slot].first_cell;
    Answer answer = { .clean = false };

    for (uint32_t part = region->part; part < region->part + region->count; part++) {
        if (has_answer(check, first + part, write, &answer))
            check->proof->verdict->orders_checked += answer.asked;
        else
            ask(check, g, region->slot, part, write, &answer);
        note_access(check, g, first + part, write);
    }
}

static void
touch(LhRaceCheck *check, uint32_t g, const LhRegion *region, bool write)
{
    const uint32_t first = check->proof->program->slots[region->slot].first_cell;

    if (region->count >= MANY_PARTS) {
        touch_many(check, g, region, write);
        return;
    }
    for (uint32_t part = region->part; part < region->part + region->count; part++) {
        if (write)
            check_write(check, g, region->slot, part);
        else
            check_read(check, g, region->slot, part);
        note_access(check, g, first + part, write);
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
    check->readers =
        g_new0(uint32_t, MAX((size_t)proof->cells_count * proof->program->streams_count, 1));
    return check;
}

void
lh_race_check_free(LhRaceCheck *check)
{
    g_free(check->cells);
    g_free(check->readers);
    g_free(check);
}

void
lh_race_check_begin(LhRaceCheck *check)
{
    for (uint32_t i = 0; i < check->proof->cells_count; i++)
        check->cells[i] = (CellUse){ .writer = LH_NONE };
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
