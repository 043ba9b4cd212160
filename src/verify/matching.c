/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier's matching: every send has its receive, every collective its members. Matches are
 * found by sorting, so the cost is n log n in the messages of the whole program.
 */
#include "verify/verify_private.h"

#include <stdlib.h>

/* One end of a message; sends and receives have the same sort key. Tags are not part of it: NCCL
 * has none. */
typedef struct {
    uint32_t source, destination;
    uint32_t communicator;
    uint32_t part; /* global index; ascending in posting order, since an end belongs to one rank */
} End;

static int
compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int
compare_keys(const End *a, const End *b)
{
    int order = compare_u32(a->source, b->source);

    if (order == 0)
        order = compare_u32(a->destination, b->destination);
    return order != 0 ? order : compare_u32(a->communicator, b->communicator);
}

static int
compare_ends(const void *a, const void *b)
{
    const End *x = (const End *)a;
    const End *y = (const End *)b;
    const int order = compare_keys(x, y);

    return order != 0 ? order : compare_u32(x->part, y->part);
}

static GArray *
collect_ends(const LhProof *proof, bool send)
{
    GArray *ends = g_array_new(FALSE, FALSE, sizeof(End));
    bool sorted = true;

    for (uint32_t i = 0; i < proof->parts_count; i++) {
        const LhPart *part = &proof->parts[i];
        const uint32_t rank = proof->op_rank[proof->part_op[i]];
        const End end = {
            .source = send ? rank : part->peer,
            .destination = send ? part->peer : rank,
            .communicator = proof->ops[proof->part_op[i]].communicator,
            .part = i,
        };

        if (part->send != send)
            continue;
        sorted = sorted && (ends->len == 0 ||
                            compare_ends(&g_array_index(ends, End, ends->len - 1), &end) < 0);
        g_array_append_val(ends, end);
    }
    if (!sorted)
        qsort(ends->data, ends->len, sizeof(End), compare_ends);
    return ends;
}

static void
find_unordered(LhProof *proof, const End *a, const End *b)
{
    const uint32_t op_a = proof->part_op[a->part], op_b = proof->part_op[b->part];
    g_autofree char *other = lh_op_text(proof->program, &proof->ops[op_a]);

    lh_proof_find(proof, LH_FINDING_RACE, (LhFindingPlace){ proof->op_rank[op_b], op_b, -1, op_a },
                  "and %s both exchange messages with rank %u on communicator %u, and nothing "
                  "orders them: which of their messages matches first is not determined",
                  other, proof->parts[b->part].peer, b->communicator);
}

/* Reports pairs of ends with the same key in different, unordered ops: they might match in
 * either order. */
static void
check_posting_order(LhProof *proof, const GArray *ends)
{
    for (uint32_t i = 1; i < ends->len; i++) {
        const End *a = &g_array_index(ends, End, i - 1);
        const End *b = &g_array_index(ends, End, i);
        const uint32_t op_a = proof->part_op[a->part];
        const uint32_t op_b = proof->part_op[b->part];

        if (op_a != op_b && compare_keys(a, b) == 0 && !lh_proof_ordered(proof, op_a, op_b))
            find_unordered(proof, a, b);
    }
}

/* Walks the cells of a message's regions one by one. */
typedef struct {
    const LhPart *part;
    uint32_t region, offset;
} CellWalk;

static const LhRegion *
next_region(CellWalk *walk)
{
    const LhRegion *region;

    if (walk->region == walk->part->regions_count)
        return NULL;
    region = &walk->part->regions[walk->region];
    if (++walk->offset == region->count) {
        walk->offset = 0;
        walk->region++;
    }
    return region;
}

/* Messages do not convert: both ends hold the same tensor, or the same half of it, in the same
 * type and size. */
static bool
regions_agree(const LhProof *proof, const LhRegion *x, const LhRegion *y)
{
    const LhSlot *a = &proof->program->slots[x->slot], *b = &proof->program->slots[y->slot];

    return a->kind == b->kind && a->dtype == b->dtype && a->head_dim == b->head_dim &&
           a->part_bytes == b->part_bytes && x->half == y->half;
}

/* Finds the first regions in which two ends differ; both NULL if they do not. */
static void
walk_together(const LhProof *proof, const LhPart *s, const LhPart *r, const LhRegion **a,
              const LhRegion **b)
{
    CellWalk walk_s = { .part = s };
    CellWalk walk_r = { .part = r };

    do {
        *a = next_region(&walk_s);
        *b = next_region(&walk_r);
    } while (*a != NULL && *b != NULL && regions_agree(proof, *a, *b));
}

/* "kv", or "kv:k" for a half; "nothing more". Caller frees. */
static char *
moved_text(const LhProof *proof, const LhRegion *region)
{
    if (region == NULL)
        return g_strdup("nothing more");
    return g_strconcat(proof->program->slots[region->slot].name, lh_half_suffixes[region->half],
                       NULL);
}

static void
find_difference(LhProof *proof, uint32_t send, const LhRegion *a, uint32_t receive,
                const LhRegion *b)
{
    const uint32_t op = proof->part_op[send], other_op = proof->part_op[receive];
    const bool halves = a != NULL && b != NULL && a->half != b->half;
    g_autofree char *sent = moved_text(proof, a);
    g_autofree char *received = moved_text(proof, b);
    g_autofree char *other = lh_proof_rank_op_text(proof, other_op);

    lh_proof_find(
        proof, LH_FINDING_UNMATCHED,
        (LhFindingPlace){ proof->op_rank[op], op, a != NULL ? (int32_t)a->slot : -1, other_op },
        "sends %s (tag %u) where %s receives %s%s", sent, proof->parts[send].tag, other, received,
        halves                   ? ": not the same half"
        : a != NULL && b != NULL ? ": tensors or sizes differ"
                                 : "");
}

/* Reports what differs between two ends: tags, sizes, or the regions @a and @b. */
static void
find_mismatch(LhProof *proof, uint32_t send, const LhRegion *a, uint32_t receive, const LhRegion *b)
{
    const LhPart *s = &proof->parts[send];
    const LhPart *r = &proof->parts[receive];
    const uint32_t op_s = proof->part_op[send];
    const uint32_t op_r = proof->part_op[receive];
    g_autofree char *other = lh_proof_rank_op_text(proof, op_r);

    if (s->tag != r->tag)
        lh_proof_find(
            proof, LH_FINDING_UNMATCHED,
            (LhFindingPlace){ proof->op_rank[op_s], op_s, (int32_t)s->regions[0].slot, op_r },
            "sends tag %u where %s receives tag %u: messages of one communicator match in "
            "order, whatever their tags",
            s->tag, other, r->tag);
    if (s->wire_bytes != r->wire_bytes)
        lh_proof_find(
            proof, LH_FINDING_UNMATCHED,
            (LhFindingPlace){ proof->op_rank[op_s], op_s, (int32_t)s->regions[0].slot, op_r },
            "sends %" G_GUINT64_FORMAT " bytes (tag %u), but %s receives %" G_GUINT64_FORMAT,
            s->wire_bytes, s->tag, other, r->wire_bytes);
    if (a != NULL || b != NULL)
        find_difference(proof, send, a, receive, b);
}

void
lh_proof_check_pair(LhProof *proof, uint32_t send, uint32_t receive)
{
    const LhPart *s = &proof->parts[send];
    const LhPart *r = &proof->parts[receive];
    const LhRegion *a, *b;

    walk_together(proof, s, r, &a, &b);
    if (s->tag != r->tag || s->wire_bytes != r->wire_bytes || a != NULL || b != NULL)
        find_mismatch(proof, send, a, receive, b);
}

static void
find_alone(LhProof *proof, uint32_t i)
{
    const LhPart *part = &proof->parts[i];
    const uint32_t op = proof->part_op[i];

    lh_proof_find(
        proof, LH_FINDING_UNMATCHED,
        (LhFindingPlace){ proof->op_rank[op], op, (int32_t)part->regions[0].slot, LH_NONE },
        "%s %s %s rank %u (tag %u), which never %s it", part->send ? "sends" : "receives",
        proof->program->slots[part->regions[0].slot].name, part->send ? "to" : "from", part->peer,
        part->tag, part->send ? "receives" : "sends");
}

static void
match_messages(LhProof *proof)
{
    g_autoptr(GArray) sends = collect_ends(proof, true);
    g_autoptr(GArray) receives = collect_ends(proof, false);
    uint32_t s = 0, r = 0;

    check_posting_order(proof, sends);
    check_posting_order(proof, receives);
    while (s < sends->len || r < receives->len) {
        const End *send = s < sends->len ? &g_array_index(sends, End, s) : NULL;
        const End *receive = r < receives->len ? &g_array_index(receives, End, r) : NULL;
        const int order = send != NULL && receive != NULL ? compare_keys(send, receive) : 0;

        if (send != NULL && (receive == NULL || order < 0)) {
            find_alone(proof, send->part);
            s++;
        } else if (receive != NULL && (send == NULL || order > 0)) {
            find_alone(proof, receive->part);
            r++;
        } else if (send != NULL && receive != NULL) {
            proof->part_match[send->part] = receive->part;
            proof->part_match[receive->part] = send->part;
            lh_proof_check_pair(proof, send->part, receive->part);
            proof->verdict->messages++;
            s++;
            r++;
        }
    }
}

/* One rank's call of a collective. */
typedef struct {
    LhCommunicatorKey communicator;
    uint32_t turn;     /* sequence number on this communicator of this rank */
    uint32_t position; /* of the rank in the group */
    uint32_t op;
} Call;

static int
compare_calls_by_rank(const void *a, const void *b)
{
    const Call *x = (const Call *)a;
    const Call *y = (const Call *)b;
    int order = lh_communicator_compare(&x->communicator, &y->communicator);

    if (order == 0)
        order = compare_u32(x->position, y->position);
    return order != 0 ? order : compare_u32(x->op, y->op);
}

static int
compare_calls_by_turn(const void *a, const void *b)
{
    const Call *x = (const Call *)a;
    const Call *y = (const Call *)b;
    int order = lh_communicator_compare(&x->communicator, &y->communicator);

    if (order == 0)
        order = compare_u32(x->turn, y->turn);
    return order != 0 ? order : compare_u32(x->position, y->position);
}

static GArray *
collect_calls(const LhProof *proof)
{
    GArray *calls = g_array_new(FALSE, FALSE, sizeof(Call));

    for (uint32_t g = 0; g < proof->ops_count; g++) {
        const LhOp *op = &proof->ops[g];
        Call call = { .op = g };

        if (op->kind != LH_OP_COLLECTIVE)
            continue;
        call.communicator = lh_op_communicator(op);
        call.position = lh_group_position(&op->collective.group, proof->op_rank[g]);
        g_array_append_val(calls, call);
    }
    return calls;
}

/* Numbers the calls of each rank on each communicator, and checks that their order is fixed. */
static void
count_turns(LhProof *proof, GArray *calls)
{
    qsort(calls->data, calls->len, sizeof(Call), compare_calls_by_rank);
    for (uint32_t i = 1; i < calls->len; i++) {
        Call *a = &g_array_index(calls, Call, i - 1);
        Call *b = &g_array_index(calls, Call, i);
        g_autofree char *other = NULL;

        if (lh_communicator_compare(&a->communicator, &b->communicator) != 0 ||
            a->position != b->position)
            continue;
        b->turn = a->turn + 1;
        if (lh_proof_ordered(proof, a->op, b->op))
            continue;
        other = lh_op_text(proof->program, &proof->ops[a->op]);
        lh_proof_find(proof, LH_FINDING_RACE,
                      (LhFindingPlace){ proof->op_rank[b->op], b->op, -1, a->op },
                      "and %s are collectives on one communicator, and nothing orders them", other);
    }
}

/* Whether tensor @i has the same kinds and sizes of regions in both calls. */
static bool
tensors_agree(const LhProof *proof, const LhOp *a, const LhOp *b, uint32_t i)
{
    const LhRegion *send = &a->collective.send[i], *other_send = &b->collective.send[i];
    const LhRegion *receive = &a->collective.receive[i], *other = &b->collective.receive[i];

    return (a->collective.uneven ||
            (send->count == other_send->count && receive->count == other->count)) &&
           regions_agree(proof, send, other_send) && regions_agree(proof, receive, other);
}

static bool
calls_agree(const LhProof *proof, const LhOp *a, const LhOp *b)
{
    bool agree = a->collective.kind == b->collective.kind &&
                 a->collective.reduction == b->collective.reduction &&
                 a->collective.uneven == b->collective.uneven &&
                 (a->collective.uneven || a->collective.wire_bytes == b->collective.wire_bytes) &&
                 a->collective.tensors_count == b->collective.tensors_count;

    for (uint32_t i = 0; agree && i < a->collective.tensors_count; i++)
        agree = tensors_agree(proof, a, b, i);
    return agree;
}

/* Checks uneven pieces: what op @g of member @i sends to member @j must be what op @h of @j
 * expects. */
static void
check_pieces(LhProof *proof, const LhMeeting *meeting, uint32_t i, uint32_t j)
{
    const uint32_t g = proof->meeting_ops[meeting->first + i];
    const uint32_t h = proof->meeting_ops[meeting->first + j];
    const LhCollectiveCall from =
        lh_collective_call(&proof->ops[g], proof->counts, proof->op_rank[g]);
    const LhCollectiveCall to =
        lh_collective_call(&proof->ops[h], proof->counts, proof->op_rank[h]);

    for (uint32_t t = 0; t < from.op->collective.tensors_count; t++) {
        const uint32_t sent = lh_collective_sent_parts(&from, t, j);
        const uint32_t received = lh_collective_received_parts(&to, t, i);
        g_autofree char *other = NULL;

        if (sent == received)
            continue;
        other = lh_proof_rank_op_text(proof, h);
        lh_proof_find(proof, LH_FINDING_UNMATCHED, (LhFindingPlace){ proof->op_rank[g], g, -1, h },
                      "sends %u parts of its tensor %u to %s, which takes %u from it", sent, t,
                      other, received);
    }
}

void
lh_proof_check_meeting(LhProof *proof, const LhMeeting *meeting)
{
    const uint32_t *ops = &proof->meeting_ops[meeting->first];
    bool agree = true;

    for (uint32_t i = 0; i < meeting->count; i++) {
        g_autofree char *other = NULL;

        if (calls_agree(proof, &proof->ops[ops[0]], &proof->ops[ops[i]]))
            continue;
        other = lh_proof_rank_op_text(proof, ops[0]);
        lh_proof_find(
            proof, LH_FINDING_UNMATCHED,
            (LhFindingPlace){ proof->op_rank[ops[i]], ops[i], -1, ops[0] },
            "matches %s, which is a different collective or has different sizes or halves", other);
        agree = false;
    }
    for (uint32_t i = 0; agree && proof->ops[ops[0]].collective.uneven && i < meeting->count; i++) {
        for (uint32_t j = 0; j < meeting->count; j++)
            check_pieces(proof, meeting, i, j);
    }
}

/* Joins the calls first .. first + count, which have one turn of one communicator. */
static void
meet(LhProof *proof, const GArray *calls, uint32_t first, uint32_t count)
{
    const Call *call = &g_array_index(calls, Call, first);
    LhMeeting *meeting = &proof->meetings[proof->meetings_count];
    uint32_t absent = 0;

    while (absent < count && g_array_index(calls, Call, first + absent).position == absent)
        absent++;
    if (absent < lh_group_size(&call->communicator.group)) {
        lh_proof_find(proof, LH_FINDING_UNMATCHED,
                      (LhFindingPlace){ proof->op_rank[call->op], call->op, -1, LH_NONE },
                      "is collective %u of its communicator, but rank %" G_GUINT64_FORMAT
                      " never takes part in it",
                      call->turn, lh_group_member(&call->communicator.group, absent));
        return;
    }
    meeting->first = first;
    meeting->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t op = g_array_index(calls, Call, first + i).op;

        proof->meeting_ops[first + i] = op;
        proof->op_meeting[op] = proof->meetings_count;
    }
    lh_proof_check_meeting(proof, meeting);
    proof->meetings_count++;
}

static void
match_collectives(LhProof *proof)
{
    g_autoptr(GArray) calls = collect_calls(proof);

    if (calls->len == 0)
        return;
    count_turns(proof, calls);
    qsort(calls->data, calls->len, sizeof(Call), compare_calls_by_turn);
    proof->meetings = g_new0(LhMeeting, calls->len);
    proof->meeting_ops = g_new0(uint32_t, calls->len);
    proof->op_meeting = g_new(uint32_t, proof->ops_count);
    for (uint32_t g = 0; g < proof->ops_count; g++)
        proof->op_meeting[g] = LH_NONE;
    for (uint32_t first = 0, next; first < calls->len; first = next) {
        const Call *call = &g_array_index(calls, Call, first);

        for (next = first + 1; next < calls->len; next++) {
            const Call *other = &g_array_index(calls, Call, next);

            if (lh_communicator_compare(&call->communicator, &other->communicator) != 0 ||
                call->turn != other->turn)
                break;
        }
        meet(proof, calls, first, next - first);
    }
}

void
lh_proof_check_order_of_calls(LhProof *proof)
{
    g_autoptr(GArray) calls = collect_calls(proof);

    if (calls->len > 0)
        count_turns(proof, calls);
}

void
lh_proof_match(LhProof *proof)
{
    match_messages(proof);
    match_collectives(proof);
}
