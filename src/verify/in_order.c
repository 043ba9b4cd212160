/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proof that never holds the whole program. First each rank is checked by itself (each_rank.c).
 * Then all ranks are executed symbolically, each in program order, with the ops of one step each:
 * an exchange ends when the other ends of all its messages have been posted, a collective when
 * every member has called it. If all ranks come to their ends, then the program terminates with all
 * streams of a rank in one queue, so with any queues, and the order of this execution is one in
 * which lh_proof_check_coverage() might have applied the ops.
 *
 * Matching by order is the same as in matching.c: a rank posts its messages in program order, so
 * those of one key meet in the order of both ranks; and a rank calls the collectives of a
 * communicator one after the other.
 *
 * Whatever is wrong with a program, this file only says that it could not prove it. The stages that
 * hold the whole program then find and name the error.
 */
#include "verify/each_rank.h"
#include "verify/verify_private.h"

#include <stddef.h>
#include <string.h>

#define BUCKETS_MAX (UINT32_C(1) << 20)

/* Where a rank is. Its ops of the current step are at the same place of the window all along. */
typedef struct {
    LhCursor cursor;
    uint32_t next, end; /* ops of the window */
    uint32_t waits;     /* messages of the exchange under way whose other end is not there */
} RankPlace;

/* A communicator of collectives, and the members that have called its current one. */
typedef struct {
    LhCommunicatorKey key;
    LhMeeting meeting;
    uint32_t arrived;
} Communicator;

/* Messages with the same key match in order. */
typedef struct {
    uint32_t source, destination;
    uint8_t communicator;
    bool send; /* this end, not of the key */
} MessageKey;

/* One end of a message whose other end has not been posted. */
typedef struct {
    MessageKey key;
    uint32_t next; /* part in its list, or LH_NONE */
} PostedEnd;

typedef struct {
    LhProof proof; /* the window: the current step of every rank */
    LhProgramSize size;
    LhSymbolicExec cover;
    LhOpBuffer buffer;
    RankPlace *places; /* [ranks] */
    uint32_t finished; /* ranks at their end */
    bool gave_up;

    uint32_t *ready; /* [ranks] a queue in a ring: ranks that can go on */
    uint32_t ready_first, ready_count;

    /* Messages with one end posted, by a hash of their key: first of each list, next of each
     * part. */
    uint32_t *bucket;
    PostedEnd *posted; /* [parts_count] */
    uint32_t buckets;  /* a power of 2 */

    GHashTable *communicators; /* set of Communicator */
    GArray *meeting_ops;       /* of uint32_t; those of a communicator are at its meeting's place */
} Run;

static guint
communicator_hash(gconstpointer data)
{
    return lh_communicator_hash(&((const Communicator *)data)->key);
}

static gboolean
communicators_equal(gconstpointer a, gconstpointer b)
{
    return lh_communicator_compare(&((const Communicator *)a)->key,
                                   &((const Communicator *)b)->key) == 0;
}

/* The window's arrays, of equal room for every rank. False: it would be larger than the program,
 * because few ranks have most of the ops. */
static bool
make_window(Run *run, const LhProof *proof)
{
    const LhProgramSize *size = &run->size;
    const uint64_t ops = (uint64_t)proof->ranks * size->step_ops;
    const uint64_t parts = (uint64_t)proof->ranks * size->step_parts;
    const uint64_t counts = (uint64_t)proof->ranks * size->step_counts;
    LhProof *window = &run->proof;

    if (ops > 2 * size->ops || parts > MAX(2 * size->parts, ops) ||
        counts > MAX(2 * size->counts, ops))
        return false;
    *window = *proof;
    window->ops_count = (uint32_t)ops;
    window->parts_count = (uint32_t)parts;
    window->ops = g_new(LhOp, MAX(ops, 1));
    window->op_rank = g_new(uint32_t, MAX(ops, 1));
    window->parts = g_new(LhPart, MAX(parts, 1));
    window->part_op = g_new(uint32_t, MAX(parts, 1));
    window->counts = g_new(uint32_t, MAX(counts, 1));
    for (uint32_t g = 0; g < window->ops_count; g++)
        window->op_rank[g] = g / size->step_ops;
    return true;
}

static void
make_run(Run *run)
{
    const uint32_t ranks = run->proof.ranks;

    run->places = g_new0(RankPlace, ranks);
    run->ready = g_new(uint32_t, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        lh_cursor_init(&run->places[rank].cursor, run->proof.program, rank);
        run->places[rank].next = run->places[rank].end = rank * run->size.step_ops;
        run->ready[rank] = rank;
    }
    run->ready_count = ranks;
    run->buckets = 1;
    while (run->buckets < run->proof.parts_count && run->buckets < BUCKETS_MAX)
        run->buckets *= 2;
    run->bucket = g_new(uint32_t, run->buckets);
    memset(run->bucket, 0xff, run->buckets * sizeof(uint32_t)); /* LH_NONE */
    run->posted = g_new(PostedEnd, MAX(run->proof.parts_count, 1));
    run->communicators =
        g_hash_table_new_full(communicator_hash, communicators_equal, NULL, g_free);
    run->meeting_ops = g_array_new(FALSE, FALSE, sizeof(uint32_t));
}

static void
clear_run(Run *run)
{
    g_free(run->proof.ops);
    g_free(run->proof.op_rank);
    g_free(run->proof.parts);
    g_free(run->proof.part_op);
    g_free(run->proof.counts);
    g_free(run->places);
    g_free(run->ready);
    g_free(run->bucket);
    g_free(run->posted);
    g_hash_table_unref(run->communicators);
    g_array_unref(run->meeting_ops);
    lh_op_buffer_clear(&run->buffer);
}

static bool
has_failed(const Run *run)
{
    return run->gave_up || run->proof.verdict->findings_total > 0 ||
           lh_symbolic_sets_words(&run->cover.contents) > LH_VERIFY_WORDS_MAX;
}

/* The bytes of an op that mean something: a collective names many regions, most ops few. */
static size_t
bytes_of(const LhOp *op)
{
    switch (op->kind) {
    case LH_OP_COMPUTE:
        return offsetof(LhOp, compute.regions) +
               MIN(op->compute.regions_count, LH_KERNEL_OPERANDS_MAX) * sizeof(LhRegion);
    case LH_OP_COLLECTIVE:
        return sizeof(LhOp);
    case LH_OP_EXCHANGE:
        return offsetof(LhOp, exchange) + sizeof(op->exchange);
    default:
        return offsetof(LhOp, memory) + sizeof(op->memory);
    }
}

/* Puts the step in the buffer into the rank's place of the window. */
static void
take_step(Run *run, uint32_t rank)
{
    const LhOpBuffer *buffer = &run->buffer;
    const uint32_t first = rank * run->size.step_ops;
    const uint32_t parts_first = rank * run->size.step_parts;
    const uint32_t counts_first = rank * run->size.step_counts;
    LhProof *proof = &run->proof;

    if (buffer->ops_count > run->size.step_ops || buffer->parts_count > run->size.step_parts ||
        buffer->counts_count > run->size.step_counts) {
        run->gave_up = true;
        return;
    }
    if (buffer->parts_count > 0)
        memcpy(&proof->parts[parts_first], buffer->parts, buffer->parts_count * sizeof(LhPart));
    if (buffer->counts_count > 0)
        memcpy(&proof->counts[counts_first], buffer->counts,
               buffer->counts_count * sizeof(uint32_t));
    for (uint32_t g = first; g < first + buffer->ops_count; g++) {
        LhOp *op = &proof->ops[g];

        memcpy(op, &buffer->ops[g - first], bytes_of(&buffer->ops[g - first]));
        lh_unrolled_move(op, buffer, parts_first, counts_first);
        for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++)
            proof->part_op[op->exchange.parts_first + i] = g;
    }
    run->places[rank].next = first;
    run->places[rank].end = first + buffer->ops_count;
}

/* Reads on until the rank has an op to do. False: it has none left. */
static bool
has_op(Run *run, uint32_t rank)
{
    RankPlace *place = &run->places[rank];

    while (place->next == place->end) {
        if (!lh_cursor_step(&place->cursor, &run->buffer)) {
            run->finished++;
            return false;
        }
        if (run->buffer.ops_count > 0)
            take_step(run, rank);
        if (run->gave_up)
            return false;
    }
    return true;
}

/* Lets a rank go on after the op that it has waited in. */
static void
release(Run *run, uint32_t rank)
{
    const uint32_t ranks = run->proof.ranks;

    run->places[rank].next++;
    run->ready[(run->ready_first + run->ready_count++) % ranks] = rank;
}

/* ---- messages ---- */

/* The oldest part of the other direction with @key, taken out of its list. LH_NONE: there is none,
 * and part @i is at the end of the list now. */
static uint32_t
find_partner(Run *run, uint32_t i, MessageKey key)
{
    const uint32_t hash =
        (key.source * 0x9e3779b1u ^ key.destination * 0x85ebca6bu) + key.communicator * 0xc2b2ae35u;
    uint32_t *link = &run->bucket[(hash ^ hash >> 15) & (run->buckets - 1)];

    while (*link != LH_NONE) {
        const uint32_t other = *link;
        const MessageKey *found = &run->posted[other].key;

        if (found->source == key.source && found->destination == key.destination &&
            found->communicator == key.communicator && found->send != key.send) {
            *link = run->posted[other].next;
            return other;
        }
        link = &run->posted[other].next;
    }
    *link = i;
    run->posted[i] = (PostedEnd){ key, LH_NONE };
    return LH_NONE;
}

/* Matches two ends and moves the message. */
static void
deliver(Run *run, uint32_t send, uint32_t receive)
{
    lh_proof_check_pair(&run->proof, send, receive);
    if (has_failed(run))
        return;
    run->proof.verdict->messages++;
    lh_symbolic_transfer(&run->cover, send, receive);
}

/* Starts an exchange. False: it has to wait for other ranks. */
static bool
post_messages(Run *run, uint32_t rank, uint32_t g)
{
    const LhProof *proof = &run->proof;
    const LhOp *op = &proof->ops[g];
    RankPlace *place = &run->places[rank];

    place->waits = 0;
    for (uint32_t i = 0; i < op->exchange.parts_count && !has_failed(run); i++) {
        const uint32_t part = op->exchange.parts_first + i;
        const LhPart *end = &proof->parts[part];
        const uint32_t peer = end->peer;
        const MessageKey key = { .source = end->send ? rank : peer,
                                 .destination = end->send ? peer : rank,
                                 .communicator = op->communicator,
                                 .send = end->send };
        const uint32_t other = find_partner(run, part, key);

        if (other == LH_NONE) {
            place->waits++;
            continue;
        }
        if (end->send)
            deliver(run, part, other);
        else
            deliver(run, other, part);
        if (--run->places[peer].waits == 0)
            release(run, peer);
    }
    return place->waits == 0;
}

/* ---- collectives ---- */

static Communicator *
communicator_of(Run *run, const LhOp *op)
{
    const Communicator wanted = { .key = lh_op_communicator(op) };
    Communicator *found = g_hash_table_lookup(run->communicators, &wanted);

    if (found != NULL)
        return found;
    found = g_memdup2(&wanted, sizeof(wanted));
    found->meeting = (LhMeeting){ .first = run->meeting_ops->len,
                                  .count = (uint32_t)lh_group_size(&op->collective.group) };
    g_array_set_size(run->meeting_ops, found->meeting.first + found->meeting.count);
    run->proof.meeting_ops = (uint32_t *)(void *)run->meeting_ops->data;
    g_hash_table_add(run->communicators, found);
    return found;
}

/* Calls a collective. False: it has to wait for other members. */
static bool
join_collective(Run *run, uint32_t rank, uint32_t g)
{
    LhProof *proof = &run->proof;
    const LhOp *op = &proof->ops[g];
    Communicator *communicator = communicator_of(run, op);
    const LhMeeting *meeting = &communicator->meeting;

    proof->meeting_ops[meeting->first + lh_group_position(&op->collective.group, rank)] = g;
    if (++communicator->arrived < meeting->count)
        return false;
    communicator->arrived = 0;
    lh_proof_check_meeting(proof, meeting);
    if (has_failed(run))
        return false;
    lh_symbolic_meet(&run->cover, meeting);
    for (uint32_t i = 0; i < meeting->count; i++) {
        const uint32_t member = proof->op_rank[proof->meeting_ops[meeting->first + i]];

        if (member != rank)
            release(run, member);
    }
    return true;
}

/* ---- execution ---- */

/* What is allocated holds nothing. */
static void
forget(Run *run, uint32_t rank, const LhRegion *region)
{
    for (uint32_t i = 0; i < region->count; i++) {
        LhCell *cell = lh_symbolic_cell(&run->cover, rank, region->slot, region->part + i);

        /* Data that nothing has used must still be there to be missed. */
        if (cell->unread)
            run->gave_up = true;
        cell->state = LH_CELL_UNDEFINED;
    }
}

/* Does op @g. False: the rank waits in it. */
static bool
do_op(Run *run, uint32_t rank, uint32_t g)
{
    const LhOp *op = &run->proof.ops[g];

    switch (op->kind) {
    case LH_OP_COMPUTE:
        lh_symbolic_apply(&run->cover, g);
        return true;
    case LH_OP_EXCHANGE:
        return post_messages(run, rank, g);
    case LH_OP_COLLECTIVE:
        return join_collective(run, rank, g);
    case LH_OP_ALLOC:
        forget(run, rank, &op->memory.region);
        return true;
    default:
        return true;
    }
}

static void
execute_rank(Run *run, uint32_t rank)
{
    RankPlace *place = &run->places[rank];

    while (!has_failed(run) && has_op(run, rank) && do_op(run, rank, place->next))
        place->next++;
}

static bool
run_ranks(Run *run)
{
    bool ended;

    make_run(run);
    lh_symbolic_begin(&run->cover, &run->proof);
    while (run->ready_count > 0 && !has_failed(run)) {
        const uint32_t rank = run->ready[run->ready_first];

        run->ready_first = (run->ready_first + 1) % run->proof.ranks;
        run->ready_count--;
        execute_rank(run, rank);
    }
    ended = !has_failed(run);
    lh_symbolic_end(&run->cover, ended);
    clear_run(run);
    return ended && run->proof.verdict->findings_total == 0 && run->finished == run->proof.ranks;
}

/* Takes over what has been counted. */
static void
take_counts(LhVerdict *verdict, LhVerdict *counted)
{
    verdict->one_queue = true;
    verdict->in_order = true;
    verdict->messages = counted->messages;
    verdict->orders_checked = counted->orders_checked;
    verdict->pairs_checked = counted->pairs_checked;
    memcpy(verdict->bytes_sent, counted->bytes_sent, verdict->ranks * sizeof(uint64_t));
    memcpy(verdict->flops, counted->flops, verdict->ranks * sizeof(uint64_t));
    memcpy(verdict->peak_bytes, counted->peak_bytes, verdict->ranks * sizeof(uint64_t));
}

bool
lh_proof_run_in_order(LhProof *proof)
{
    g_autoptr(LhVerdict) verdict = lh_verdict_new(proof->ranks);
    LhProof tried = *proof;
    Run run = { 0 };

    if (proof->program->step != NULL || proof->program->modules_count > 0)
        return false;
    verdict->attends = proof->verdict->attends;
    tried.verdict = verdict;
    if (!lh_proof_check_each_rank(&tried, &run.size) || !make_window(&run, &tried) ||
        !run_ranks(&run))
        return false;
    proof->verdict->ops = run.size.ops;
    take_counts(proof->verdict, verdict);
    return true;
}
