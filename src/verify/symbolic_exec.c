/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier's symbolic execution. Ops are applied in one topological order of the whole program.
 * That suffices: the earlier stages have shown that every other legal order has the same effect on
 * every cell. At the end the results must hold what the mask requires, nothing missing and nothing
 * twice.
 */
#include "verify/verify_private.h"

#include "verify/alloc_times.h"
#include "verify/layer_boundary.h"
#include "verify/movement.h"

#include <string.h>

/* Cache size: attention requests the same blocks repeatedly; 24 bytes each. */
#define BLOCKS_KEPT (UINT32_C(1) << 20)

static void
keep_blocks(LhSymbolicExec *cover)
{
    const uint32_t segments = cover->segments;
    LhBlock *blocks;

    if ((uint64_t)segments * segments > BLOCKS_KEPT)
        return;
    blocks = g_new(LhBlock, (size_t)segments * segments);
    for (uint32_t q = 0; q < segments; q++) {
        for (uint32_t k = 0; k < segments; k++)
            blocks[(size_t)q * segments + k] = lh_symbolic_block(cover, q, k);
    }
    cover->blocks = blocks;
}

static void
fill_complete_sets(LhSymbolicExec *cover)
{
    for (uint32_t q = 0; q < cover->segments; q++) {
        for (uint32_t k = 0; k < cover->segments; k++) {
            const LhMaskKind kind = lh_symbolic_block(cover, q, k).kind;

            if (kind == LH_MASK_EMPTY)
                continue;
            lh_set_add(&cover->keys_of[(size_t)q * cover->words], k);
            if (kind == LH_MASK_FULL)
                lh_set_add(&cover->all_of[(size_t)q * cover->words], k);
            if (k < q)
                lh_set_add(&cover->before[(size_t)q * cover->words], k);
            for (uint32_t slice = 0; slice < cover->replicas; slice++)
                lh_set_add(&cover->queries_of[(size_t)k * cover->words],
                           lh_symbolic_source(cover, LH_FAMILY_DKV, (LhHolding){ q, slice }));
        }
    }
}

static void
fill_inputs(LhSymbolicExec *cover)
{
    const LhProof *proof = cover->proof;

    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        for (uint32_t slot = 0; slot < proof->program->slots_count; slot++) {
            for (uint32_t part = 0; part < cover->slots[slot].parts; part++) {
                if ((cover->slots[slot].role == LH_SLOT_INPUT ||
                     cover->slots[slot].role == LH_SLOT_STATE) &&
                    !lh_boundary_gives(cover, &cover->slots[slot]))
                    lh_symbolic_fill_input(cover, rank, slot, part);
            }
        }
    }
}

/* Whether two ranks work on different batches, so that one cannot use the other's contents in a
 * slot of this kind. Weights are common to all. */
static bool
are_apart(const LhProof *proof, LhTensorKind kind, uint32_t rank, uint32_t other)
{
    return !lh_tensor_is_of_model(kind) &&
           rank / proof->program->params.ranks != other / proof->program->params.ranks;
}

/* The regions of both ends may be split differently; they correspond cell by cell. */
void
lh_symbolic_transfer(LhSymbolicExec *cover, uint32_t send, uint32_t receive)
{
    const LhPart *s = &cover->proof->parts[send];
    const LhPart *r = &cover->proof->parts[receive];
    const uint32_t from_op = cover->proof->part_op[send], to_op = cover->proof->part_op[receive];
    const LhTensorKind kind = cover->slots[r->regions[0].slot].kind;
    const bool apart = are_apart(cover->proof, kind, r->peer, s->peer);
    const LhRegion *target = r->regions;
    uint32_t offset = 0;

    if (apart)
        COVERAGE(to_op, target->slot, "receives from rank %u, whose group has another batch",
                 r->peer);

    for (uint32_t k = 0; k < s->regions_count; k++) {
        for (uint32_t i = 0; i < s->regions[k].count; i++) {
            const LhCell *from = lh_symbolic_read(cover, from_op, &s->regions[k], i);

            lh_symbolic_put(cover, to_op, target, offset, apart ? NULL : from);
            if (++offset == target->count) {
                offset = 0;
                target++;
            }
        }
    }
}

/*
 * Messages move when the second of their two ops starts: before that one end does not exist yet,
 * and until both have ended neither region changes.
 */
static void
start_exchange(LhSymbolicExec *cover, uint32_t g)
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
            lh_symbolic_transfer(cover, part, match);
        else
            lh_symbolic_transfer(cover, match, part);
    }
}

/* A movement and the cells it applies to. */
typedef struct {
    LhSymbolicExec *cover;
    LhMovement of;
    const LhCollectiveCall *calls; /* [members] */
} Movement;

static const LhCell *
read_sent(const Movement *m, uint32_t position, uint32_t i)
{
    return lh_symbolic_read(m->cover, lh_movement_op(&m->of, position),
                            lh_movement_send(&m->of, position), i);
}

static void
put_received(const Movement *m, uint32_t position, uint32_t i, const LhCell *from)
{
    lh_symbolic_put(m->cover, lh_movement_op(&m->of, position),
                    lh_movement_receive(&m->of, position), i, from);
}

/* Checks the reduction: attention results are merged, gradients are added. For other activations
 * only the rows are tracked, for weights not even those. */
static bool
check_reduction(const Movement *m)
{
    LhSymbolicExec *cover = m->cover;
    const uint32_t op = lh_movement_op(&m->of, 0);
    const LhSlot *slot = &cover->slots[lh_movement_send(&m->of, 0)->slot];
    const bool attention = slot->kind == LH_TENSOR_ACC || slot->kind == LH_TENSOR_OUT;

    if (slot->kind == LH_TENSOR_LSE) {
        COVERAGE(op, lh_movement_send(&m->of, 0)->slot,
                 "adds up slot %s (lse): logarithms of sums cannot be added", slot->name);
        return false;
    }
    if ((lh_families[slot->kind] != LH_FAMILY_PLAIN || slot->kind == LH_TENSOR_HIDDEN ||
         lh_tensor_is_of_model(slot->kind)) &&
        attention == (cover->proof->ops[op].collective.reduction == LH_REDUCE_ATTENTION))
        return true;
    COVERAGE(op, lh_movement_send(&m->of, 0)->slot, "cannot reduce slot %s (%s) this way",
             slot->name, lh_tensor_names[slot->kind]);
    return false;
}

/* Checks that part @i of what member @position sends, @from, may be added to @sum. */
static bool
add_sent(const Movement *m, uint32_t position, uint32_t i, LhCell *sum, const LhCell *from)
{
    LhSymbolicExec *cover = m->cover;
    const uint32_t op = lh_movement_op(&m->of, position);
    const LhRegion *region = lh_movement_send(&m->of, position);
    const LhTensorKind kind = cover->slots[region->slot].kind;
    const LhAddend addend = { region, i, lh_symbolic_norm(kind, from) };
    const bool fresh = sum->rows.segment == LH_ROW_ANY;

    if (fresh) {
        sum->rows = from->rows;
        sum->ended = from->ended;
    }
    if (kind == LH_TENSOR_HIDDEN)
        return lh_boundary_add(cover, op, region, position == 0, sum, from);
    if (from->rows.segment == LH_ROW_ANY)
        return true;
    if (from->ended != sum->ended || !lh_rows_equal(from->rows, sum->rows)) {
        COVERAGE(op, region->slot, "adds slot %s to a sum that it does not belong to",
                 cover->slots[region->slot].name);
        return false;
    }
    return lh_symbolic_join_norm(cover, op, &addend, kind, fresh, sum) &&
           lh_symbolic_merge(cover, op, region, sum, from);
}

/* Reduces what all members send to part @i of member @to's receive region, in the scratch cell;
 * NULL if it cannot be reduced. */
static const LhCell *
reduce(const Movement *m, uint32_t to, uint32_t i)
{
    LhSymbolicExec *cover = m->cover;
    LhCell *sum = &cover->cells[(size_t)cover->proof->ranks * cover->proof->cells_count];

    if (!check_reduction(m))
        return NULL;
    lh_symbolic_clear_set(cover, sum);
    *sum = (LhCell){ .rows.segment = LH_ROW_ANY, .state = LH_CELL_DEFINED };
    for (uint32_t j = 0; j < m->of.meeting->count; j++) {
        const uint32_t part = lh_collective_sends(&m->calls[j], m->of.tensor, to).first + i;
        const LhCell *from = read_sent(m, j, part);

        if (from == NULL || !add_sent(m, j, part, sum, from))
            return NULL;
    }
    return sum;
}

static void
receive_copies(const Movement *m, uint32_t to)
{
    const uint32_t op = lh_movement_op(&m->of, to);
    const LhRegion *target = lh_movement_receive(&m->of, to);

    for (uint32_t j = 0; j < m->of.meeting->count; j++) {
        const uint32_t sender = lh_movement_op(&m->of, j);
        const LhRegion *source = lh_movement_send(&m->of, j);
        const LhShare sent = lh_collective_sends(&m->calls[j], m->of.tensor, to);
        const LhShare received = lh_collective_receives(&m->calls[to], m->of.tensor, j);

        for (uint32_t i = 0; i < sent.count; i++)
            lh_symbolic_put(m->cover, op, target, received.first + i,
                            lh_symbolic_read(m->cover, sender, source, sent.first + i));
    }
}

/* Writes sums to their receivers at once: each member may have sent from where it receives. */
static void
receive_sums(const Movement *m)
{
    const bool same = m->calls[0].op->collective.kind == LH_COLL_ALL_REDUCE;

    for (uint32_t i = 0; i < lh_movement_receive(&m->of, 0)->count; i++) {
        const LhCell *sum = same ? reduce(m, 0, i) : NULL;

        for (uint32_t to = 0; to < m->of.meeting->count; to++)
            put_received(m, to, i, same ? sum : reduce(m, to, i));
    }
}

static void
hold_tensor(const Movement *m)
{
    if (lh_collective_reduces(m->calls[0].op->collective.kind)) {
        receive_sums(m);
        return;
    }
    for (uint32_t to = 0; to < m->of.meeting->count; to++)
        receive_copies(m, to);
}

/* Checks that a tensor moves within one data-parallel group; otherwise the results are suspect. */
static bool
check_batch(const Movement *m)
{
    LhSymbolicExec *cover = m->cover;
    const LhProof *proof = cover->proof;
    const LhTensorKind kind = cover->slots[lh_movement_receive(&m->of, 0)->slot].kind;
    const uint32_t rank = proof->op_rank[lh_movement_op(&m->of, 0)];
    uint32_t other = 0;

    while (other < m->of.meeting->count &&
           !are_apart(proof, kind, rank, proof->op_rank[lh_movement_op(&m->of, other)]))
        other++;
    if (other == m->of.meeting->count)
        return true;
    COVERAGE(lh_movement_op(&m->of, 0), lh_movement_receive(&m->of, 0)->slot,
             "matches rank %u, whose group has another batch",
             proof->op_rank[lh_movement_op(&m->of, other)]);
    for (uint32_t i = 0; i < m->of.meeting->count; i++) {
        for (uint32_t k = 0; k < lh_movement_receive(&m->of, i)->count; k++)
            lh_symbolic_put(cover, lh_movement_op(&m->of, i), lh_movement_receive(&m->of, i), k,
                            NULL);
    }
    return false;
}

/* Applies a collective. Its tensors move independently: the race check has shown that none
 * touches another one's regions. */
void
lh_symbolic_meet(LhSymbolicExec *cover, const LhMeeting *meeting)
{
    const LhProof *proof = cover->proof;
    g_autofree LhCollectiveCall *calls = g_new(LhCollectiveCall, meeting->count);

    for (uint32_t i = 0; i < meeting->count; i++) {
        const uint32_t g = proof->meeting_ops[meeting->first + i];

        calls[i] = lh_collective_call(&proof->ops[g], proof->counts, proof->op_rank[g]);
    }
    for (uint32_t i = 0; i < calls[0].op->collective.tensors_count; i++) {
        const Movement movement = { cover, { proof, meeting, i }, calls };

        if (check_batch(&movement))
            hold_tensor(&movement);
    }
}

#define AT_END(rank, slot, ...)                                                                    \
    lh_proof_find(cover->proof, LH_FINDING_COVERAGE,                                               \
                  (LhFindingPlace){ rank, LH_NONE, (int32_t)(slot), LH_NONE }, __VA_ARGS__)

/* Finds the smallest contribution missing in the rows of an output, and whether there are more. */
static void
check_complete(LhSymbolicExec *cover, uint32_t rank, uint32_t slot, uint32_t part, LhHolding rows)
{
    const LhFamily family = lh_families[cover->slots[slot].kind];
    const uint64_t *want = lh_symbolic_complete(cover, family, rows.segment);
    const uint64_t *set = lh_symbolic_set(cover, lh_symbolic_cell(cover, rank, slot, part));
    uint32_t missing = 0, least = LH_NONE;
    g_autofree char *name = NULL, *text = NULL, *lacks = NULL;

    for (uint32_t w = cover->words; w > 0; w--) {
        const uint64_t lacking = want[w - 1] & ~set[w - 1];

        missing += (uint32_t)__builtin_popcountll(lacking);
        if (lacking != 0)
            least = (w - 1) * 64 + (uint32_t)__builtin_ctzll(lacking);
    }
    if (missing == 0)
        return;
    name = lh_cell_text(cover->proof->program, slot, part);
    text = lh_symbolic_rows_text(cover, rows);
    lacks = lh_symbolic_source_text(cover, family, least, rows.slice);
    AT_END(rank, slot, "ends with an output %s for %s that lacks the contribution of %s%s", name,
           text, lacks, missing > 1 ? " and others" : "");
}

/* Whether an output cell holds all contributions to its rows; false does not mean an error. */
static bool
is_complete(const LhSymbolicExec *cover, LhTensorKind kind, const LhCell *cell, LhHolding rows)
{
    const LhFamily family = lh_families[kind];

    return family != LH_FAMILY_PLAIN && cell->state == LH_CELL_DEFINED &&
           cell->half == LH_HALF_BOTH && lh_rows_equal(cell->rows, rows) &&
           cell->set == lh_symbolic_complete_number(cover, family, rows.segment);
}

static void
check_result(LhSymbolicExec *cover, uint32_t rank, uint32_t slot, uint32_t part)
{
    const LhTensorKind kind = cover->slots[slot].kind;
    const LhCell *cell = lh_symbolic_cell(cover, rank, slot, part);
    const LhHolding rows = lh_slot_holding(cover->proof->program, &cover->slots[slot], rank, part);
    const bool plain = lh_families[kind] == LH_FAMILY_PLAIN;
    g_autofree char *name = NULL;

    if (kind == LH_TENSOR_STATE && rows.segment == 0)
        return; /* nothing precedes the first segment */
    if (is_complete(cover, kind, cell, rows))
        return;
    name = lh_cell_text(cover->proof->program, slot, part);
    if (!lh_slot_holds(cover->proof->program, &cover->slots[slot], rank, part))
        return;
    if (cell->state == LH_CELL_UNDEFINED)
        AT_END(rank, slot, "ends without having written its output %s", name);
    if (cell->state != LH_CELL_DEFINED)
        return;
    if (plain && cell->rows.segment == LH_ROW_NONE) {
        if (kind == LH_TENSOR_HIDDEN)
            lh_boundary_check_output(cover, rank, slot, cell);
        return;
    }
    if (cell->half != LH_HALF_BOTH)
        AT_END(rank, slot, "ends with only %s in its output %s", lh_half_suffixes[cell->half] + 1,
               name);
    if (cell->rows.segment != LH_ROW_ANY && !lh_rows_equal(cell->rows, rows)) {
        g_autofree char *text = lh_symbolic_rows_text(cover, rows);

        AT_END(rank, slot, "ends with rows in its output %s that are not those of its %s", name,
               text);
        return;
    }
    if (!plain)
        check_complete(cover, rank, slot, part, rows);
    else if (kind == LH_TENSOR_HIDDEN)
        lh_boundary_check_output(cover, rank, slot, cell);
}

static void
check_results(LhSymbolicExec *cover)
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

/* False, with a finding: there are too many different sets. */
static bool
execute(LhSymbolicExec *cover)
{
    const LhProof *proof = cover->proof;

    for (uint32_t i = 0; i < proof->nodes_count; i++) {
        const uint32_t node = proof->order[i];
        const uint32_t g = node / 2;

        if (lh_symbolic_sets_words(&cover->contents) > LH_VERIFY_WORDS_MAX) {
            lh_proof_find(cover->proof, LH_FINDING_MALFORMED,
                          (LhFindingPlace){ LH_NONE, LH_NONE, -1, LH_NONE },
                          "has too many different contents to verify; use fewer ranks");
            return false;
        }
        if (node >= 2 * proof->ops_count + proof->meetings_count)
            continue; /* issue by the host */
        if (node >= 2 * proof->ops_count)
            lh_symbolic_meet(cover, &proof->meetings[node - 2 * proof->ops_count]);
        else if (node % 2 == 0 && proof->ops[g].kind == LH_OP_EXCHANGE)
            start_exchange(cover, g);
        else if (node % 2 == 1 && proof->ops[g].kind == LH_OP_COMPUTE)
            lh_symbolic_apply(cover, g);
    }
    return true;
}

void
lh_symbolic_begin(LhSymbolicExec *cover, LhProof *proof)
{
    const LhPlacement *placement = &proof->program->placement;
    const uint32_t segments = lh_placement_segments(placement);
    const uint32_t replicas = lh_proof_replicas(proof);
    const uint32_t words = (segments * replicas + 63) / 64;
    const size_t cells =
        (size_t)proof->ranks * proof->cells_count + 1; /* plus a scratch cell for sums */

    *cover = (LhSymbolicExec){ .proof = proof,
                               .slots = proof->program->slots,
                               .segments = segments,
                               .replicas = replicas,
                               .words = words };
    cover->segment = g_new(LhSegment, segments);
    for (uint32_t s = 0; s < segments; s++)
        cover->segment[s] = lh_placement_segment(placement, s);
    cover->rows = cover->segment[0].count;
    cover->cells = g_new0(LhCell, cells);
    lh_symbolic_sets_init(&cover->contents, words);
    cover->scratch = g_new(uint64_t, 3 * (size_t)words);
    cover->keys_of = g_new0(uint64_t, (size_t)segments * words);
    cover->all_of = g_new0(uint64_t, (size_t)segments * words);
    cover->before = g_new0(uint64_t, (size_t)segments * words);
    cover->queries_of = g_new0(uint64_t, (size_t)segments * words);
    lh_boundary_begin(cover);
    keep_blocks(cover);
    fill_complete_sets(cover);
    lh_symbolic_number_complete(cover);
    fill_inputs(cover);
}

void
lh_symbolic_end(LhSymbolicExec *cover, bool executed)
{
    if (executed)
        check_results(cover);
    else
        cover->projects = false; /* what is left says nothing */
    lh_boundary_end(cover);
    g_free(cover->segment);
    g_free(cover->blocks);
    g_free(cover->cells);
    g_free(cover->writers);
    lh_symbolic_sets_clear(&cover->contents);
    g_free(cover->scratch);
    g_free(cover->keys_of);
    g_free(cover->all_of);
    g_free(cover->queries_of);
    g_free(cover->before);
    g_free(cover->complete);
    g_free(cover->started);
}

void
lh_proof_check_coverage(LhProof *proof)
{
    const size_t cells = (size_t)proof->ranks * proof->cells_count + 1;
    LhSymbolicExec cover;

    lh_boundary_scan(proof, (LhOpRange){ 0, proof->ops_count });
    lh_symbolic_begin(&cover, proof);
    cover.writers = g_new(uint32_t, cells);
    memset(cover.writers, 0xff, cells * sizeof(uint32_t)); /* LH_NONE */
    cover.started = g_new0(uint8_t, MAX(proof->ops_count, 1));
    lh_proof_list_allocs(proof);
    lh_symbolic_end(&cover, execute(&cover));
}
