/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives as rounds of messages, the same over every transport and all links, and the same as
 * the simulator's algorithms of these names (sim/network/collectives). A rank sends equally many
 * bytes with each of them. All tensors of one collective are sent together.
 */
#include "runtime/run_collective.h"

#include "runtime/bind.h"
#include "runtime/collective_copies.h"
#include "runtime/collective_reductions.h"

/*
 * A phase of a collective: one or more rounds of messages. Every tensor makes its messages of a
 * round; when all have arrived, every tensor finishes the round. Both functions return false if the
 * run has failed. Device work in between runs in stream order.
 */
typedef struct {
    bool (*make)(LhRunTensor *);
    bool (*finish)(LhRunTensor *);               /* NULL: nothing to do */
    uint32_t (*rounds)(const LhCollectiveRun *); /* NULL: one */
} Phase;

#define PHASES_MAX 2

static uint32_t
one_for_each_other(const LhCollectiveRun *c)
{
    return c->call.members - 1;
}

/* ---- native collectives ---- */

static bool
call_library(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;
    const LhOp *op = c->call.op;
    const LhSlot *slot = &c->program->slots[t->from->region.slot];
    LhNativeCall *call = &c->item->native[c->item->native_count++];

    t->own = lh_run_tensor_copy(t, (LhByteRange){ 0, lh_bound_bytes(t->from) });
    t->sum = lh_run_tensor_temporary(t, lh_bound_bytes(t->to));
    if (t->own == NULL || t->sum == NULL)
        return false;
    *call = (LhNativeCall){ .kind = op->collective.kind,
                            .storage = lh_dtype_storage(slot->dtype),
                            .from = t->own,
                            .to = t->sum,
                            .from_bytes = lh_bound_bytes(t->from),
                            .to_bytes = lh_bound_bytes(t->to),
                            .stream = c->stream->at.stream };
    return true;
}

/* Copies the library's result. Bytes sent are counted by formula, since only the library knows what
 * it sends. */
static bool
keep_result(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;
    const LhOp *op = c->call.op;
    const uint64_t whole = lh_bound_bytes(t->from);
    const bool is_cut = lh_collective_reduces(op->collective.kind);

    c->item->bytes +=
        lh_collective_bytes_sent(op->collective.kind, &op->collective.group, c->stream->rank->index,
                                 is_cut ? whole / c->call.members : whole);
    return lh_run_tensor_keep(t, (LhByteRange){ 0, lh_bound_bytes(t->to) }, t->sum);
}

/* Broadcasts by messages are the same in all. */
static const Phase phases[][LH_COLL_KINDS][PHASES_MAX] = {
    [LH_WAY_DIRECT] = {
        [LH_COLL_ALL_GATHER] = { { lh_make_copies } },
        [LH_COLL_REDUCE_SCATTER] = { { lh_make_slices, lh_reduce_slices } },
        [LH_COLL_ALL_REDUCE] = { { lh_make_slices, lh_reduce_slices }, { lh_make_reduced } },
        [LH_COLL_ALL_TO_ALL] = { { lh_make_copies } },
        [LH_COLL_BROADCAST] = { { lh_make_from_before }, { lh_make_to_next } },
    },
    [LH_WAY_RING] = {
        [LH_COLL_ALL_GATHER] = { { lh_gather_in_ring, NULL, one_for_each_other } },
        [LH_COLL_REDUCE_SCATTER] = { { lh_make_sum, lh_add_to_sum, one_for_each_other } },
        [LH_COLL_ALL_REDUCE] = { { lh_make_sum, lh_add_to_sum, one_for_each_other },
                                 { lh_pass_block, NULL, one_for_each_other } },
        [LH_COLL_ALL_TO_ALL] = { { lh_make_copies } },
        [LH_COLL_BROADCAST] = { { lh_make_from_before }, { lh_make_to_next } },
    },
    [LH_WAY_PAIRWISE] = {
        [LH_COLL_ALL_GATHER] = { { lh_gather_in_ring, NULL, one_for_each_other } },
        [LH_COLL_REDUCE_SCATTER] = { { lh_make_sum, lh_add_to_sum, one_for_each_other } },
        [LH_COLL_ALL_REDUCE] = { { lh_make_sum, lh_add_to_sum, one_for_each_other },
                                 { lh_pass_block, NULL, one_for_each_other } },
        [LH_COLL_ALL_TO_ALL] = { { lh_make_pair, NULL, one_for_each_other } },
        [LH_COLL_BROADCAST] = { { lh_make_from_before }, { lh_make_to_next } },
    },
    [LH_WAY_NATIVE] = {
        [LH_COLL_ALL_GATHER] = { { call_library, keep_result } },
        [LH_COLL_REDUCE_SCATTER] = { { call_library, keep_result } },
        [LH_COLL_ALL_REDUCE] = { { call_library, keep_result } },
        [LH_COLL_ALL_TO_ALL] = { { lh_make_copies } },
        [LH_COLL_BROADCAST] = { { call_library, keep_result } },
    },
};

/* ---- the collective ---- */

/* The algorithm in use: direct for a group of one, and for merges of attention, which no library
 * has. */
static LhCollectiveWay
way_of(const LhCollectiveRun *c)
{
    const LhOp *op = c->call.op;
    const LhCollectiveWay way = c->stream->rank->execution->params->collectives;
    const bool merges =
        lh_collective_reduces(op->collective.kind) && op->collective.reduction != LH_REDUCE_SUM;

    return c->call.members == 1 || (merges && way == LH_WAY_NATIVE) ? LH_WAY_DIRECT : way;
}

static const Phase *
phase_of(const LhCollectiveRun *c)
{
    return &phases[way_of(c)][c->call.op->collective.kind][c->phase];
}

static void
start_collective(LhRunStream *s, LhItem *item)
{
    const LhOp *op = &item->op;
    LhCollectiveRun *c = lh_item_memory(item, sizeof(*c));

    *c = (LhCollectiveRun){
        .stream = s,
        .item = item,
        .program = s->rank->execution->program,
        .call = lh_collective_call(op, item->counts, s->rank->index),
        .channel = lh_channel_of(s->rank->execution->channels, op),
    };
    for (uint32_t i = 0; i < op->collective.tensors_count; i++)
        c->tensors[i] = (LhRunTensor){ .c = c,
                                       .index = i,
                                       .from = &item->bound[2 * (size_t)i],
                                       .to = &item->bound[2 * (size_t)i + 1] };
    item->run = c;
}

bool
lh_collective_begin_round(LhRunStream *s, LhItem *item)
{
    const uint32_t count = item->op.collective.tensors_count;
    bool ok = true;

    if (item->run == NULL)
        start_collective(s, item);
    item->messages = g_new0(LhMessage, 2 * (gsize)item->run->call.members * count);
    item->native = g_new0(LhNativeCall, count);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = phase_of(item->run)->make(&item->run->tensors[i]);
    return ok;
}

bool
lh_collective_end_round(LhItem *item)
{
    LhCollectiveRun *c = item->run;
    const Phase *phase = phase_of(c);
    bool ok = true;

    for (uint32_t i = 0; ok && i < item->op.collective.tensors_count && phase->finish != NULL; i++)
        ok = phase->finish(&c->tensors[i]);
    if (++c->step == (phase->rounds == NULL ? 1 : phase->rounds(c))) {
        c->phase++;
        c->step = 0;
    }
    return ok;
}

bool
lh_collective_has_round(const LhItem *item)
{
    return item->run == NULL ||
           (item->run->phase < PHASES_MAX && phase_of(item->run)->make != NULL);
}
