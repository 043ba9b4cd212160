/*
 * The verifier's symbolic execution. Ops are applied in a topological order of the whole program,
 * which is enough: the earlier stages have shown that every other legal order does the same to
 * every cell. In the end the results must hold what the mask says, nothing less and nothing twice.
 */
#include "sched/verify_cover.h"

#include <string.h>

static void
fill_complete_sets(LhCover *cover)
{
    for (uint32_t q = 0; q < cover->segments; q++) {
        for (uint32_t k = 0; k < cover->segments; k++) {
            if (lh_cover_block(cover, q, k).kind == LH_MASK_EMPTY)
                continue;
            lh_set_add(&cover->keys_of[(size_t)q * cover->words], k);
            lh_set_add(&cover->queries_of[(size_t)k * cover->words], q);
        }
    }
}

/* Inputs hold the rank's own segments; whatever among them is a result is complete. */
static void
fill_inputs(LhCover *cover)
{
    const LhProof *proof = cover->proof;
    const LhProgram *program = proof->program;

    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        for (uint32_t slot = 0; slot < program->slots_count; slot++) {
            if (program->slots[slot].role != LH_SLOT_INPUT)
                continue;
            for (uint32_t part = 0; part < program->slots[slot].parts; part++) {
                LhCell *cell = lh_cover_cell(cover, rank, slot, part);
                const LhFamily family = lh_families[program->slots[slot].kind];

                cell->row = lh_placement_segment_id(&program->placement, rank, part);
                cell->state = LH_CELL_DEFINED;
                cell->ended = true;
                if (family != LH_FAMILY_PLAIN)
                    memcpy(lh_cover_set(cover, cell), lh_cover_complete(cover, family, cell->row),
                           cover->words * 8);
            }
        }
    }
}

/* Lists the allocs of every (rank, slot), so that contents can be seen to have died in between. */
static void
list_allocs(LhCover *cover)
{
    const LhProof *proof = cover->proof;
    const size_t keys = (size_t)proof->ranks * proof->program->slots_count;
    uint32_t count = 0;

    cover->alloc_first = g_new0(uint32_t, keys + 1);
    for (uint32_t g = 0; g < proof->ops_count; g++) {
        if (proof->ops[g].kind != LH_OP_ALLOC)
            continue;
        cover->alloc_first[(size_t)proof->op_rank[g] * proof->program->slots_count +
                           proof->ops[g].memory.slot]++;
        count++;
    }
    for (size_t i = 0; i < keys; i++)
        cover->alloc_first[i + 1] += cover->alloc_first[i];
    cover->allocs = g_new(uint32_t, MAX(count, 1));
    for (uint32_t g = proof->ops_count; g > 0; g--) {
        const LhOp *op = &proof->ops[g - 1];

        if (op->kind == LH_OP_ALLOC)
            cover->allocs[--cover->alloc_first[(size_t)proof->op_rank[g - 1] *
                                                   proof->program->slots_count +
                                               op->memory.slot]] = g - 1;
    }
}

/* Puts what @from holds (NULL: something suspect) into part @i of @region, written by @op. */
static void
put(LhCover *cover, uint32_t op, const LhRegion *region, uint32_t i, const LhCell *from)
{
    LhCell *cell = lh_cover_cell(cover, cover->proof->op_rank[op], region->slot, region->part + i);

    if (from == NULL) {
        lh_cover_write(cover, op, region, i, LH_ROW_NONE)->state = LH_CELL_SUSPECT;
        return;
    }
    *cell = *from;
    cell->writer = op;
    if (cell != from)
        memmove(lh_cover_set(cover, cell), lh_cover_set(cover, from), cover->words * 8);
}

/* Regions of both ends are cut differently, perhaps; cell by cell they agree. */
static void
transfer(LhCover *cover, uint32_t send, uint32_t receive)
{
    const LhPart *s = &cover->proof->parts[send];
    const LhPart *r = &cover->proof->parts[receive];
    const LhRegion *target = r->regions;
    uint32_t offset = 0;

    for (uint32_t k = 0; k < s->regions_count; k++) {
        for (uint32_t i = 0; i < s->regions[k].count; i++) {
            const LhCell *from =
                lh_cover_read(cover, cover->proof->part_op[send], &s->regions[k], i);

            put(cover, cover->proof->part_op[receive], target, offset, from);
            if (++offset == target->count) {
                offset = 0;
                target++;
            }
        }
    }
}

/*
 * Messages move when the second of their two ops starts: before that one end is not there, and
 * until both have ended neither region changes.
 */
static void
start_exchange(LhCover *cover, uint32_t g)
{
    const LhProof *proof = cover->proof;
    const LhOp *op = &proof->ops[g];

    cover->started[g] = 1;
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const uint32_t part = op->exchange.parts_first + i;
        const uint32_t match = proof->part_match[part];

        if (!cover->started[proof->part_op[match]])
            continue;
        if (proof->parts[part].send)
            transfer(cover, part, match);
        else
            transfer(cover, match, part);
    }
}

static uint32_t
member(const LhCover *cover, const LhMeeting *meeting, uint32_t position)
{
    return cover->proof->meeting_ops[meeting->first + position];
}

static const LhCell *
read_sent(LhCover *cover, uint32_t op, uint32_t i)
{
    return lh_cover_read(cover, op, &cover->proof->ops[op].collective.send[0], i);
}

/* The sum of part @i of all members' send regions, in the scratch cell; NULL if it is not one. */
static const LhCell *
reduce(LhCover *cover, const LhMeeting *meeting, uint32_t i)
{
    LhCell *sum = &cover->cells[(size_t)cover->proof->ranks * cover->proof->cells_count];
    const LhOp *first = &cover->proof->ops[member(cover, meeting, 0)];
    const LhFamily family = lh_families[cover->slots[first->collective.send[0].slot].kind];
    const bool attention = cover->slots[first->collective.send[0].slot].kind == LH_TENSOR_ACC;

    if (family == LH_FAMILY_PLAIN ||
        attention != (first->collective.reduction == LH_REDUCE_ATTENTION)) {
        COVERAGE(member(cover, meeting, 0), first->collective.send[0].slot,
                 "cannot reduce slot %s (%s) in this way",
                 cover->slots[first->collective.send[0].slot].name,
                 lh_tensor_names[cover->slots[first->collective.send[0].slot].kind]);
        return NULL;
    }
    *sum = (LhCell){ .row = LH_ROW_ANY, .state = LH_CELL_DEFINED };
    memset(lh_cover_set(cover, sum), 0, cover->words * 8);
    for (uint32_t j = 0; j < meeting->count; j++) {
        const uint32_t op = member(cover, meeting, j);
        const LhRegion *region = &cover->proof->ops[op].collective.send[0];
        const LhCell *from = read_sent(cover, op, i);

        if (from == NULL)
            return NULL;
        if (sum->row == LH_ROW_ANY)
            sum->row = from->row;
        if (j == 0)
            sum->ended = from->ended;
        if (from->ended != sum->ended || (from->row != LH_ROW_ANY && from->row != sum->row)) {
            COVERAGE(op, region->slot, "adds to a sum what does not belong in it (slot %s)",
                     cover->slots[region->slot].name);
            return NULL;
        }
        if (!lh_cover_merge(cover, op, region, sum, from))
            return NULL;
    }
    return sum;
}

static void
hold_gather(LhCover *cover, const LhMeeting *meeting)
{
    for (uint32_t j = 0; j < meeting->count; j++) {
        const uint32_t sender = member(cover, meeting, j);
        const uint32_t count = cover->proof->ops[sender].collective.send[0].count;

        for (uint32_t k = 0; k < count; k++) {
            const LhCell *from = read_sent(cover, sender, k);

            for (uint32_t i = 0; i < meeting->count; i++) {
                const uint32_t receiver = member(cover, meeting, i);

                put(cover, receiver, &cover->proof->ops[receiver].collective.receive[0],
                    j * count + k, from);
            }
        }
    }
}

static void
hold_reduce_scatter(LhCover *cover, const LhMeeting *meeting)
{
    for (uint32_t i = 0; i < meeting->count; i++) {
        const uint32_t receiver = member(cover, meeting, i);
        const LhRegion *receive = &cover->proof->ops[receiver].collective.receive[0];

        for (uint32_t k = 0; k < receive->count; k++)
            put(cover, receiver, receive, k, reduce(cover, meeting, i * receive->count + k));
    }
}

static void
hold_all_to_all(LhCover *cover, const LhMeeting *meeting)
{
    for (uint32_t i = 0; i < meeting->count; i++) {
        const uint32_t receiver = member(cover, meeting, i);
        const LhRegion *receive = &cover->proof->ops[receiver].collective.receive[0];
        const uint32_t count = receive->count / meeting->count;

        for (uint32_t k = 0; k < receive->count; k++)
            put(cover, receiver, receive, k,
                read_sent(cover, member(cover, meeting, k / count), i * count + k % count));
    }
}

/* All-reduce and broadcast: every member gets the same. */
static void
hold_for_all(LhCover *cover, const LhMeeting *meeting, bool sum)
{
    const uint32_t root = member(cover, meeting, 0);

    for (uint32_t k = 0; k < cover->proof->ops[root].collective.receive[0].count; k++) {
        const LhCell *from = sum ? reduce(cover, meeting, k) : read_sent(cover, root, k);

        for (uint32_t i = 0; i < meeting->count; i++) {
            const uint32_t receiver = member(cover, meeting, i);

            put(cover, receiver, &cover->proof->ops[receiver].collective.receive[0], k, from);
        }
    }
}

static void
hold_meeting(LhCover *cover, const LhMeeting *meeting)
{
    switch (cover->proof->ops[member(cover, meeting, 0)].collective.kind) {
    case LH_COLL_ALL_GATHER:
        hold_gather(cover, meeting);
        break;
    case LH_COLL_REDUCE_SCATTER:
        hold_reduce_scatter(cover, meeting);
        break;
    case LH_COLL_ALL_TO_ALL:
        hold_all_to_all(cover, meeting);
        break;
    case LH_COLL_ALL_REDUCE:
        hold_for_all(cover, meeting, true);
        break;
    case LH_COLL_BROADCAST:
    default:
        hold_for_all(cover, meeting, false);
        break;
    }
}

#define AT_END(rank, slot, ...)                                                                    \
    lh_proof_find(cover->proof, LH_FINDING_COVERAGE,                                               \
                  (LhPlace){ rank, LH_NONE, (int32_t)(slot), LH_NONE }, __VA_ARGS__)

static void
check_result(LhCover *cover, uint32_t rank, uint32_t slot, uint32_t part)
{
    const LhCell *cell = lh_cover_cell(cover, rank, slot, part);
    const uint32_t row = lh_placement_segment_id(&cover->proof->program->placement, rank, part);
    const LhFamily family = lh_families[cover->slots[slot].kind];
    g_autofree char *name = lh_proof_cell_text(cover->proof, slot, part);
    const uint64_t *want;
    uint32_t missing = 0, least = LH_NONE;

    if (cell->state == LH_CELL_UNDEFINED)
        AT_END(rank, slot, "ends without having written its output %s", name);
    if (cell->state != LH_CELL_DEFINED || (family == LH_FAMILY_PLAIN && cell->row == LH_ROW_NONE))
        return;
    if (cell->row != row && cell->row != LH_ROW_ANY) {
        AT_END(rank, slot, "ends with other rows in its output %s than those of its segment %u",
               name, row);
        return;
    }
    if (family == LH_FAMILY_PLAIN)
        return;
    want = lh_cover_complete(cover, family, row);
    for (uint32_t s = 0; s < cover->segments; s++) {
        if (lh_set_has(want, s) && !lh_set_has(lh_cover_set(cover, cell), s)) {
            least = MIN(least, s);
            missing++;
        }
    }
    if (missing > 0)
        AT_END(rank, slot,
               "ends with an output %s for segment %u that lacks the contribution of segment %u%s",
               name, row, least, missing > 1 ? " and others" : "");
}

static void
check_results(LhCover *cover)
{
    const LhProof *proof = cover->proof;

    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        for (uint32_t slot = 0; slot < proof->program->slots_count; slot++) {
            for (uint32_t part = 0; part < cover->slots[slot].parts; part++) {
                if (cover->slots[slot].role == LH_SLOT_OUTPUT)
                    check_result(cover, rank, slot, part);
            }
        }
    }
}

static void
execute(LhCover *cover)
{
    const LhProof *proof = cover->proof;

    for (uint32_t i = 0; i < proof->nodes_count; i++) {
        const uint32_t node = proof->order[i];
        const uint32_t g = node / 2;

        if (node >= 2 * proof->ops_count)
            hold_meeting(cover, &proof->meetings[node - 2 * proof->ops_count]);
        else if (node % 2 == 0 && proof->ops[g].kind == LH_OP_EXCHANGE)
            start_exchange(cover, g);
        else if (node % 2 == 1 && proof->ops[g].kind == LH_OP_COMPUTE)
            lh_cover_apply(cover, g);
    }
}

void
lh_proof_check_coverage(LhProof *proof)
{
    const LhPlacement *placement = &proof->program->placement;
    const uint32_t segments = lh_placement_segments(placement);
    const uint32_t words = (segments + 63) / 64;
    const size_t cells = (size_t)proof->ranks * proof->cells_count + 1; /* and one to add up in */
    g_autofree LhSegment *segment = g_new(LhSegment, segments);
    LhCover cover = {
        .proof = proof, .slots = proof->program->slots, .segments = segments, .words = words
    };

    for (uint32_t s = 0; s < segments; s++)
        segment[s] = lh_placement_segment(placement, s);
    cover.segment = segment;
    cover.rows = segment[0].count;
    cover.cells = g_new0(LhCell, cells);
    for (size_t i = 0; i < cells; i++)
        cover.cells[i].writer = LH_NONE;
    cover.sets = g_new0(uint64_t, cells * words);
    cover.keys_of = g_new0(uint64_t, (size_t)segments * words);
    cover.queries_of = g_new0(uint64_t, (size_t)segments * words);
    cover.started = g_new0(uint8_t, MAX(proof->ops_count, 1));
    fill_complete_sets(&cover);
    fill_inputs(&cover);
    list_allocs(&cover);
    execute(&cover);
    check_results(&cover);
    g_free(cover.cells);
    g_free(cover.sets);
    g_free(cover.keys_of);
    g_free(cover.queries_of);
    g_free(cover.started);
    g_free(cover.alloc_first);
    g_free(cover.allocs);
}
