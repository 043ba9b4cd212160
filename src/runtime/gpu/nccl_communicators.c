/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that exchange messages with each other are found by matching all messages as the verifier
 * does, by order alone. */
#include "runtime/gpu/nccl_communicators.h"

#include "base/error.h"
#include "program/cursor.h"

#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX (UINT32_C(1) << 8)
#define STREAMS (NUMBERS_MAX * LH_STREAMS_MAX) /* distinct for all numbers */
#define NONE UINT32_MAX

/* One end of a message. */
typedef struct {
    uint32_t source, destination, order; /* posting order of the rank */
    uint16_t stream;                     /* number * LH_STREAMS_MAX + stream */
} LaneEnd;

/* The key of a message lane: the root of its streams, and two of its members. */
typedef struct {
    uint32_t root, first, second;
} Key;

struct _LhNcclComms {
    GArray *lanes; /* of LhNcclComm */
    uint32_t rounds;
    uint16_t root[STREAMS];
    bool several[STREAMS];      /* by root: joins more than one stream */
    GHashTable *of_messages;    /* Key *, owned -> lane + 1 */
    GHashTable *of_collectives; /* LhCommunicatorKey *, owned -> lane + 1 */
};

/* ---- tables ---- */

static guint
hash_key(gconstpointer key)
{
    const Key *k = key;

    return k->root * 31U + k->first * 65599U + k->second;
}

static gboolean
equal_keys(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(Key)) == 0;
}

static uint16_t
stream_of(const LhOp *op)
{
    return (uint16_t)(op->communicator * LH_STREAMS_MAX + op->stream);
}

/* The key of messages between two ranks: the pair if it has a lane of its own, else @rank, which
 * stands for its connected set. */
static Key
lane_key(const LhNcclComms *lanes, uint16_t stream, uint32_t rank, uint32_t peer)
{
    const uint16_t root = lanes->root[stream];

    if (lanes->several[root])
        return (Key){ root, MIN(rank, peer), MAX(rank, peer) };
    return (Key){ root, rank, NONE };
}

/* ---- the ops of the program ---- */

typedef struct {
    LhNcclComms *lanes;
    uint32_t ranks;
    GArray *sends, *receives; /* of LaneEnd */
    bool used[STREAMS];
} LaneWalk;

static bool
add_exchange(LaneWalk *w, uint32_t rank, const LhOp *op, const LhPart *parts, GError **error)
{
    w->used[stream_of(op)] = true;
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &parts[op->exchange.parts_first + i];
        GArray *ends = part->send ? w->sends : w->receives;
        const LaneEnd end = { .source = part->send ? rank : part->peer,
                              .destination = part->send ? part->peer : rank,
                              .order = ends->len,
                              .stream = stream_of(op) };

        if (part->peer == rank) {
            g_set_error(error, LH_ERROR, LH_ERROR_NO,
                        "rank %u, op %u exchanges a message with itself, which NCCL cannot carry",
                        rank, op->id);
            return false;
        }
        g_array_append_val(ends, end);
    }
    return true;
}

static LhNcclComm *
add_lane(LhNcclComms *lanes, uint8_t number, bool collectives, uint32_t count)
{
    const LhNcclComm lane = { .number = number,
                              .collectives = collectives,
                              .members = g_new0(uint32_t, count),
                              .count = count };

    g_array_append_val(lanes->lanes, lane);
    return &g_array_index(lanes->lanes, LhNcclComm, lanes->lanes->len - 1);
}

static void
add_collective(LaneWalk *w, const LhOp *op)
{
    const LhCommunicatorKey key = lh_op_communicator(op);
    const uint32_t known = GPOINTER_TO_UINT(g_hash_table_lookup(w->lanes->of_collectives, &key));
    LhNcclComm *lane;

    if (known > 0) {
        g_array_index(w->lanes->lanes, LhNcclComm, known - 1).streams |=
            (uint16_t)(1U << op->stream);
        return;
    }
    lane = add_lane(w->lanes, op->communicator, true, (uint32_t)lh_group_size(&key.group));
    lane->streams = (uint16_t)(1U << op->stream);
    for (uint32_t i = 0; i < lane->count; i++)
        lane->members[i] = (uint32_t)lh_group_member(&key.group, i);
    g_hash_table_insert(w->lanes->of_collectives, g_memdup2(&key, sizeof(key)),
                        GUINT_TO_POINTER(w->lanes->lanes->len));
}

static bool
walk_program(LaneWalk *w, const LhProgram *program, GError **error)
{
    LhOpBuffer buffer = { 0 };
    bool ok = true;

    for (uint32_t rank = 0; ok && rank < w->ranks; rank++) {
        LhCursor cursor;

        lh_cursor_init(&cursor, program, rank);
        while (ok && lh_cursor_step(&cursor, &buffer)) {
            for (uint32_t i = 0; ok && i < buffer.ops_count; i++) {
                const LhOp *op = &buffer.ops[i];

                if (op->kind == LH_OP_EXCHANGE)
                    ok = add_exchange(w, rank, op, buffer.parts, error);
                else if (op->kind == LH_OP_COLLECTIVE)
                    add_collective(w, op);
            }
        }
    }
    lh_op_buffer_clear(&buffer);
    return ok;
}

/* ---- streams that exchange messages ---- */

static int
compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int
compare_peers(const LaneEnd *a, const LaneEnd *b)
{
    int order = compare_u32(a->stream / LH_STREAMS_MAX, b->stream / LH_STREAMS_MAX);

    if (order == 0)
        order = compare_u32(a->source, b->source);
    return order != 0 ? order : compare_u32(a->destination, b->destination);
}

static int
compare_ends(const void *a, const void *b)
{
    const LaneEnd *x = a, *y = b;
    const int order = compare_peers(x, y);

    return order != 0 ? order : compare_u32(x->order, y->order);
}

static uint16_t
root_of(LhNcclComms *lanes, uint16_t stream)
{
    while (lanes->root[stream] != stream)
        stream = lanes->root[stream] = lanes->root[lanes->root[stream]];
    return stream;
}

/* Joins the streams of matching ends: the k-th message that a rank sends to another on a number is
 * the k-th that the other receives from it. */
static bool
join_streams(LaneWalk *w, GError **error)
{
    LhNcclComms *lanes = w->lanes;

    for (uint32_t i = 0; i < STREAMS; i++)
        lanes->root[i] = (uint16_t)i;
    if (w->sends->len > 1)
        qsort(w->sends->data, w->sends->len, sizeof(LaneEnd), compare_ends);
    if (w->receives->len > 1)
        qsort(w->receives->data, w->receives->len, sizeof(LaneEnd), compare_ends);
    for (guint i = 0; i < MAX(w->sends->len, w->receives->len); i++) {
        const LaneEnd *send = &g_array_index(w->sends, LaneEnd, i);
        const LaneEnd *receive = &g_array_index(w->receives, LaneEnd, i);
        uint16_t a, b;

        if (i >= w->sends->len || i >= w->receives->len || compare_peers(send, receive) != 0) {
            g_set_error_literal(error, LH_ERROR, LH_ERROR_NO,
                                "a send has no matching receive, or the reverse");
            return false;
        }
        a = root_of(lanes, send->stream);
        b = root_of(lanes, receive->stream);
        lanes->root[MAX(a, b)] = MIN(a, b);
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        lanes->root[i] = root_of(lanes, (uint16_t)i);
        if (w->used[i] && lanes->root[i] != i)
            lanes->several[lanes->root[i]] = true;
    }
    return true;
}

/* ---- ranks that exchange messages ---- */

/* Finds the root of a rank in the union-find forest of ranks that messages connect. */
static uint32_t
tree_of(uint32_t *parents, uint32_t rank)
{
    while (parents[rank] != rank)
        rank = parents[rank] = parents[parents[rank]];
    return rank;
}

/* Adds a lane for each set of ranks that messages of @root connect, in order of their smallest
 * members. */
static void
add_joined(LaneWalk *w, uint16_t root)
{
    LhNcclComms *lanes = w->lanes;
    g_autofree uint32_t *parents = g_new(uint32_t, w->ranks);
    g_autofree uint32_t *sizes = g_new0(uint32_t, w->ranks);
    g_autofree uint32_t *lane_of = g_new0(uint32_t, w->ranks); /* by root */

    for (uint32_t rank = 0; rank < w->ranks; rank++)
        parents[rank] = rank;
    for (guint i = 0; i < w->sends->len; i++) {
        const LaneEnd *end = &g_array_index(w->sends, LaneEnd, i);

        if (lanes->root[end->stream] == root) {
            const uint32_t a = tree_of(parents, end->source);
            const uint32_t b = tree_of(parents, end->destination);

            parents[MAX(a, b)] = MIN(a, b);
        }
    }
    for (uint32_t rank = 0; rank < w->ranks; rank++)
        sizes[tree_of(parents, rank)]++;
    for (uint32_t rank = 0; rank < w->ranks; rank++) {
        const uint32_t first = tree_of(parents, rank);
        LhNcclComm *lane;

        if (sizes[first] == 1)
            continue;
        if (rank == first) {
            lane = add_lane(lanes, (uint8_t)(root / LH_STREAMS_MAX), false, sizes[first]);
            lane->count = 0;
            lane_of[first] = lanes->lanes->len;
        }
        lane = &g_array_index(lanes->lanes, LhNcclComm, lane_of[first] - 1);
        lane->members[lane->count++] = rank;
        g_hash_table_insert(lanes->of_messages, g_memdup2(&(Key){ root, rank, NONE }, sizeof(Key)),
                            GUINT_TO_POINTER(lane_of[first]));
    }
}

/* Adds a lane for every pair of ranks with messages of @root, in the order of the sorted ends. */
static void
add_twos(LaneWalk *w, uint16_t root)
{
    LhNcclComms *lanes = w->lanes;

    for (guint i = 0; i < w->sends->len; i++) {
        const LaneEnd *end = &g_array_index(w->sends, LaneEnd, i);
        const Key key = { root, MIN(end->source, end->destination),
                          MAX(end->source, end->destination) };
        LhNcclComm *lane;

        if (lanes->root[end->stream] != root || g_hash_table_contains(lanes->of_messages, &key))
            continue;
        lane = add_lane(lanes, (uint8_t)(root / LH_STREAMS_MAX), false, 2);
        lane->members[0] = key.first;
        lane->members[1] = key.second;
        g_hash_table_insert(lanes->of_messages, g_memdup2(&key, sizeof(key)),
                            GUINT_TO_POINTER(lanes->lanes->len));
    }
}

static uint32_t
lane_of_ends(const LhNcclComms *lanes, uint16_t stream, uint32_t rank, uint32_t peer)
{
    const Key key = lane_key(lanes, stream, rank, peer);
    const guint lane = GPOINTER_TO_UINT(g_hash_table_lookup(lanes->of_messages, &key));

    g_assert(lane > 0);
    return lane - 1;
}

static int
compare_pairs(const void *a, const void *b)
{
    const LhNcclCommPair *x = a, *y = b;
    const int order = compare_u32(x->from, y->from);

    return order != 0 ? order : compare_u32(x->to, y->to);
}

/* Sorts the pairs and removes duplicates. */
static void
set_pairs(LhNcclComm *lane, GArray *pairs)
{
    if (pairs->len > 1)
        qsort(pairs->data, pairs->len, sizeof(LhNcclCommPair), compare_pairs);
    lane->pairs = g_new(LhNcclCommPair, MAX(pairs->len, 1));
    for (guint i = 0; i < pairs->len; i++) {
        const LhNcclCommPair *pair = &g_array_index(pairs, LhNcclCommPair, i);

        if (i == 0 || compare_pairs(pair - 1, pair) != 0)
            lane->pairs[lane->pairs_count++] = *pair;
    }
}

/* Sets the pairs and streams of every lane. */
static void
list_pairs(LaneWalk *w)
{
    LhNcclComms *lanes = w->lanes;
    g_autoptr(GPtrArray) pairs = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);

    for (guint i = 0; i < lanes->lanes->len; i++)
        g_ptr_array_add(pairs, g_array_new(FALSE, FALSE, sizeof(LhNcclCommPair)));
    for (guint i = 0; i < w->sends->len; i++) {
        const LaneEnd *send = &g_array_index(w->sends, LaneEnd, i);
        const LaneEnd *receive = &g_array_index(w->receives, LaneEnd, i);
        const uint32_t at = lane_of_ends(lanes, send->stream, send->source, send->destination);
        LhNcclComm *lane = &g_array_index(lanes->lanes, LhNcclComm, at);
        const LhNcclCommPair pair = { lh_nccl_comm_position(lane, send->source),
                                      lh_nccl_comm_position(lane, send->destination) };
        GArray *list = g_ptr_array_index(pairs, at);

        lane->streams |= (uint16_t)(1U << send->stream % LH_STREAMS_MAX |
                                    1U << receive->stream % LH_STREAMS_MAX);
        if (list->len == 0 ||
            compare_pairs(&g_array_index(list, LhNcclCommPair, list->len - 1), &pair) != 0)
            g_array_append_val(list, pair);
    }
    for (guint i = 0; i < lanes->lanes->len; i++)
        set_pairs(&g_array_index(lanes->lanes, LhNcclComm, i), g_ptr_array_index(pairs, i));
}

/* Assigns each lane the first round that has none of its members. */
static void
choose_rounds(LhNcclComms *lanes, uint32_t ranks)
{
    g_autoptr(GPtrArray) rounds = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < lanes->lanes->len; i++) {
        LhNcclComm *lane = &g_array_index(lanes->lanes, LhNcclComm, i);
        bool free = false;

        for (lane->round = 0; !free; lane->round++) {
            bool *taken;

            if (lane->round == rounds->len)
                g_ptr_array_add(rounds, g_new0(bool, ranks));
            taken = g_ptr_array_index(rounds, lane->round);
            free = true;
            for (uint32_t k = 0; k < lane->count; k++)
                free = free && !taken[lane->members[k]];
        }
        lane->round--;
        for (uint32_t k = 0; k < lane->count; k++)
            ((bool *)g_ptr_array_index(rounds, lane->round))[lane->members[k]] = true;
    }
    lanes->rounds = rounds->len;
}

/* ---- the interface ---- */

LhNcclComms *
lh_nccl_comms_new(const LhProgram *program, GError **error)
{
    g_autoptr(LhNcclComms) lanes = g_new0(LhNcclComms, 1);
    g_autoptr(GArray) sends = g_array_new(FALSE, FALSE, sizeof(LaneEnd));
    g_autoptr(GArray) receives = g_array_new(FALSE, FALSE, sizeof(LaneEnd));
    g_autofree LaneWalk *w = g_new0(LaneWalk, 1);

    *w = (LaneWalk){
        .lanes = lanes, .ranks = lh_program_ranks(program), .sends = sends, .receives = receives
    };
    lanes->lanes = g_array_new(FALSE, FALSE, sizeof(LhNcclComm));
    lanes->of_messages = g_hash_table_new_full(hash_key, equal_keys, g_free, NULL);
    lanes->of_collectives =
        g_hash_table_new_full(lh_communicator_key_hash, lh_communicator_key_equal, g_free, NULL);
    if (!walk_program(w, program, error) || !join_streams(w, error))
        return NULL;
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (!w->used[i] || lanes->root[i] != i)
            continue;
        if (lanes->several[i])
            add_twos(w, (uint16_t)i);
        else
            add_joined(w, (uint16_t)i);
    }
    list_pairs(w);
    choose_rounds(lanes, w->ranks);
    return g_steal_pointer(&lanes);
}

void
lh_nccl_comms_free(LhNcclComms *lanes)
{
    if (lanes == NULL)
        return;
    for (guint i = 0; i < lanes->lanes->len; i++) {
        g_free(g_array_index(lanes->lanes, LhNcclComm, i).members);
        g_free(g_array_index(lanes->lanes, LhNcclComm, i).pairs);
    }
    g_array_unref(lanes->lanes);
    g_hash_table_unref(lanes->of_messages);
    g_hash_table_unref(lanes->of_collectives);
    g_free(lanes);
}

uint32_t
lh_nccl_comms_count(const LhNcclComms *lanes)
{
    return lanes->lanes->len;
}

const LhNcclComm *
lh_nccl_comms_at(const LhNcclComms *lanes, uint32_t lane)
{
    return &g_array_index(lanes->lanes, LhNcclComm, lane);
}

uint32_t
lh_nccl_comms_rounds(const LhNcclComms *lanes)
{
    return lanes->rounds;
}

uint32_t
lh_nccl_comm_of_message(const LhNcclComms *lanes, const LhOp *op, uint32_t rank, uint32_t peer)
{
    return lane_of_ends(lanes, stream_of(op), rank, peer);
}

uint32_t
lh_nccl_comm_of_collective(const LhNcclComms *lanes, const LhOp *op)
{
    const LhCommunicatorKey key = lh_op_communicator(op);
    const guint lane = GPOINTER_TO_UINT(g_hash_table_lookup(lanes->of_collectives, &key));

    g_assert(lane > 0);
    return lane - 1;
}

uint32_t
lh_nccl_comm_position(const LhNcclComm *lane, uint32_t rank)
{
    for (uint32_t i = 0; i < lane->count; i++) {
        if (lane->members[i] == rank)
            return i;
    }
    return UINT32_MAX;
}
