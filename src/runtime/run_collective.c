/*
 * Collectives made of messages, the same over every transport and all links: everything goes
 * straight to its destination, so that a rank sends as many bytes as by the bandwidth-optimal
 * algorithms, and reductions are done by the receiver in the order of the group, so that bits do
 * not depend on timing. A region counts as its parts laid end to end. Tensors of one collective
 * travel together.
 */
#include "runtime/execution.h"

#include "base/error.h"
#include "program/holding.h"

typedef LhCollectiveRun Collective;

/* One of its tensors. */
typedef struct {
    Collective *c;
    uint32_t index;
    const LhBound *from, *to;
    unsigned char **blocks; /* of reductions: every member's slice, this rank's own too */
} Tensor;

struct _LhCollectiveRun {
    LhRunStream *stream;
    LhItem *item; /* it makes the messages of */
    const LhProgram *program;
    LhCollectiveCall call;
    uint32_t channel;
    Tensor tensors[LH_COLLECTIVE_TENSORS_MAX];
};

/*
 * A kind of collective consists of rounds of messages. Every tensor makes its messages of a round;
 * when all of them have arrived, every tensor finishes the round. False: the run has failed. What
 * is asked of the device in between is done in the order of the stream.
 */
typedef struct {
    bool (*make)(Tensor *);
    bool (*finish)(Tensor *); /* NULL: nothing is left to do */
} Round;

#define ROUNDS_MAX 2

/* Bytes [from, from + count) of a region. */
typedef struct {
    uint64_t from, count;
} Range;

static bool
fail(const Collective *c, LhErrorCode code, const char *what)
{
    return lh_execution_fail_op(c->stream->rank, &c->item->op, (int)code, "%s", what);
}

static uint64_t
bytes_of(const LhBound *bound)
{
    return bound->region.count * bound->part_bytes;
}

static Range
range_of(const LhBound *bound, LhShare share)
{
    return (Range){ share.first * bound->part_bytes, share.count * bound->part_bytes };
}

/* The byte slice of a reduction that belongs to member @member, of a region or its sum. */
static Range
slice_of(const Tensor *t, const LhBound *bound, uint32_t member)
{
    const Collective *c = t->c;

    if (c->call.op->collective.kind == LH_COLL_REDUCE_SCATTER)
        return range_of(bound, lh_collective_sends(&c->call, t->index, member));
    return (Range){ member * (bytes_of(bound) / c->call.members),
                    bytes_of(bound) / c->call.members };
}

/* ---- memory ---- */

/* The pieces of a range; @pieces has room for one of each part. */
static uint32_t
cut(const LhBound *bound, Range range, LhPiece *pieces)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < bound->region.count && range.count > 0; i++) {
        const uint64_t skipped = MIN(range.from, bound->part_bytes);
        const uint64_t here = MIN(range.count, bound->part_bytes - skipped);

        if (here > 0)
            pieces[count++] = (LhPiece){ bound->parts[i] + skipped, here };
        range.from -= skipped;
        range.count -= here;
    }
    g_assert(range.count == 0);
    return count;
}

static bool
copy(const Tensor *t, unsigned char *to, const unsigned char *from, uint64_t bytes)
{
    const LhPlaceOfWork *at = &t->c->stream->at;
    GError *error = NULL;

    if (at->device->copy(at->state, to, from, bytes, at->stream, &error))
        return true;
    lh_execution_fail(t->c->stream->rank->execution, error);
    return false;
}

static unsigned char *
temporary(const Tensor *t, uint64_t bytes)
{
    return lh_item_temporary(t->c->stream, t->c->item, bytes);
}

/* Memory for the pieces of a region. */
static LhPiece *
room_for_pieces(const Tensor *t, const LhBound *bound)
{
    return lh_item_memory(t->c->item, MAX(bound->region.count, 1) * sizeof(LhPiece));
}

/* A copy of a range of the send region, which the receive region may overlap; NULL: failed. */
static unsigned char *
own_copy(const Tensor *t, Range range)
{
    LhPiece *pieces = room_for_pieces(t, t->from);
    const uint32_t count = cut(t->from, range, pieces);
    unsigned char *memory = temporary(t, range.count);
    unsigned char *to = memory;

    for (uint32_t i = 0; i < count && to != NULL; i++) {
        if (!copy(t, to, pieces[i].data, pieces[i].bytes))
            return NULL;
        to += pieces[i].bytes;
    }
    return memory;
}

/* Puts memory into a range of the receive region. */
static bool
keep(const Tensor *t, Range range, const unsigned char *memory)
{
    LhPiece *pieces = room_for_pieces(t, t->to);
    const uint32_t count = cut(t->to, range, pieces);

    for (uint32_t i = 0; i < count; i++) {
        if (!copy(t, pieces[i].data, memory, pieces[i].bytes))
            return false;
        memory += pieces[i].bytes;
    }
    return true;
}

/* ---- messages ---- */

static LhMessage *
add_message(const Tensor *t, bool send, uint32_t member)
{
    Collective *c = t->c;
    LhMessage *m = &c->item->messages[c->item->messages_count++];

    m->send = send;
    m->peer = (uint32_t)lh_group_member(&c->call.op->collective.group, member);
    m->channel = c->channel;
    m->slot = send ? t->from->region.slot : t->to->region.slot;
    return m;
}

/* Adds the message that carries a range of a region to a member or from it; none if the range is
 * empty. */
static void
move_range(const Tensor *t, bool send, uint32_t member, const LhBound *bound, Range range)
{
    LhMessage *m;

    if (range.count == 0)
        return;
    m = add_message(t, send, member);
    m->pieces = room_for_pieces(t, bound);
    m->pieces_count = cut(bound, range, m->pieces);
    m->bytes = range.count;
}

static void
move_memory(const Tensor *t, bool send, uint32_t member, unsigned char *memory, uint64_t bytes)
{
    LhMessage *m;

    if (bytes == 0)
        return;
    m = add_message(t, send, member);
    m->pieces = lh_item_memory(t->c->item, sizeof(LhPiece));
    m->pieces[0] = (LhPiece){ memory, bytes };
    m->pieces_count = 1;
    m->bytes = bytes;
}

/* ---- copying kinds: all-gather, all-to-all ---- */

/* The send region may be a part of the receive region, so what is sent is copied first. */
static bool
make_copies(Tensor *t)
{
    const Collective *c = t->c;
    const uint32_t self = c->call.position;
    unsigned char *own = own_copy(t, (Range){ 0, bytes_of(t->from) });

    if (own == NULL ||
        !keep(t, range_of(t->to, lh_collective_receives(&c->call, t->index, self)),
              own + range_of(t->from, lh_collective_sends(&c->call, t->index, self)).from))
        return false;
    for (uint32_t k = 0; k < c->call.members; k++) {
        const Range sent = range_of(t->from, lh_collective_sends(&c->call, t->index, k));

        if (k == self)
            continue;
        move_memory(t, true, k, own + sent.from, sent.count);
        move_range(t, false, k, t->to,
                   range_of(t->to, lh_collective_receives(&c->call, t->index, k)));
    }
    return true;
}

/* ---- reductions ---- */

/* Sums in fp32, in the order of the group, rounded once. */
static bool
sum(const Tensor *t, uint64_t bytes, unsigned char *into)
{
    const Collective *c = t->c;
    const LhPlaceOfWork *at = &c->stream->at;
    const LhSlot *slot = &c->program->slots[t->from->region.slot];
    const LhDeviceSum add = { .terms = t->blocks,
                              .count = c->call.members,
                              .sum = into,
                              .elements = bytes / lh_slot_element_bytes(slot),
                              .storage = lh_dtype_storage(slot->dtype) };

    if (at->device->sum(at->state, &add, at->stream) != LH_STATUS_OK)
        return fail(c, LH_ERROR_NO, "the device cannot add up tensors of this type");
    return true;
}

/* The rows of @parts parts of a slot of accumulators: a segment's, of a slice of the heads, each,
 * as
 * @program has them. */
static LhKernelArgs
merge_args(const LhProgram *program, const LhSlot *slot, uint64_t parts)
{
    const LhAttention *a = &program->params.attention;
    const uint64_t rows = a->seq_length / lh_placement_segments(&program->placement);

    return (LhKernelArgs){ .nq = rows * parts,
                           .batch = a->batch,
                           .heads = a->heads / lh_program_slices(program, slot->kind),
                           .groups = 1,
                           .head_dim = slot->head_dim };
}

/* Merges attention of the same rows, part by part: in fp32, in the order of the group, rounded
 * once.
 */
static bool
merge(const Tensor *t, uint64_t bytes, unsigned char *into)
{
    const Collective *c = t->c;
    const LhSlot *slot = &c->program->slots[t->from->region.slot];
    const LhProgram *of = lh_program_of_op(c->program, c->call.op);
    const uint32_t parts = (uint32_t)(bytes / slot->part_bytes);
    const LhKernelArgs one = merge_args(of, slot, 1);
    const LhKernelId kernel =
        slot->kind == LH_TENSOR_OUT ? LH_KERNEL_ID_merge_lse : LH_KERNEL_ID_merge;
    const uint64_t elements = one.batch * one.nq * one.heads * one.head_dim;
    const LhView view = { .parts = parts,
                          .part_bytes = slot->part_bytes,
                          .storage = lh_dtype_storage(slot->dtype) };
    LhView sum = { .parts = parts,
                   .part_bytes =
                       slot->part_bytes + elements * (sizeof(float) - lh_slot_element_bytes(slot)),
                   .storage = LH_STORAGE_FP32 };
    LhKernelArgs args = merge_args(of, slot, parts);

    sum.data = temporary(t, parts * sum.part_bytes);
    if (sum.data == NULL)
        return false;
    for (uint32_t k = 0; k <= c->call.members; k++) {
        const bool rounds = k == c->call.members;
        LhCall call = { .args = &args };

        args.first = k == 0 || rounds;
        call.operands[0] = rounds ? sum : view;
        call.operands[1] = rounds ? view : sum;
        if (rounds)
            call.operands[1].data = into;
        else
            call.operands[0].data = t->blocks[k];
        if (!lh_run_kernel(c->stream, c->item, kernel, &call))
            return false;
    }
    return true;
}

/* Receives every member's slice for this rank. */
static bool
make_slices(Tensor *t)
{
    const Collective *c = t->c;
    const uint32_t self = c->call.position;
    const Range own = slice_of(t, t->from, self);

    t->blocks = lh_item_memory(c->item, c->call.members * sizeof(*t->blocks));
    for (uint32_t k = 0; k < c->call.members; k++) {
        t->blocks[k] = k == self ? own_copy(t, own) : temporary(t, own.count);
        if (t->blocks[k] == NULL)
            return false;
        if (k == self)
            continue;
        move_range(t, true, k, t->from, slice_of(t, t->from, k));
        move_memory(t, false, k, t->blocks[k], own.count);
    }
    return true;
}

/* Reduces the slices into the receive region: all of it, or this rank's slice. */
static bool
reduce_slices(Tensor *t)
{
    const Collective *c = t->c;
    const bool scatter = c->call.op->collective.kind == LH_COLL_REDUCE_SCATTER;
    const Range own = slice_of(t, t->from, c->call.position);
    unsigned char *result = temporary(t, own.count);

    if (result == NULL)
        return false;
    if (!(c->call.op->collective.reduction == LH_REDUCE_SUM ? sum : merge)(t, own.count, result))
        return false;
    return keep(t, scatter ? (Range){ 0, own.count } : own, result);
}

/* All-reduce: slices are reduced where they belong, then gathered. */
static bool
make_reduced(Tensor *t)
{
    const Collective *c = t->c;

    for (uint32_t k = 0; k < c->call.members; k++) {
        if (k == c->call.position)
            continue;
        move_range(t, true, k, t->to, slice_of(t, t->to, c->call.position));
        move_range(t, false, k, t->to, slice_of(t, t->to, k));
    }
    return true;
}

/* ---- broadcast: a chain in the order of the group ---- */

static bool
make_from_before(Tensor *t)
{
    const Range all = { 0, bytes_of(t->to) };
    unsigned char *own;

    if (t->c->call.position > 0) {
        move_range(t, false, t->c->call.position - 1, t->to, all);
        return true;
    }
    own = own_copy(t, all);
    return own != NULL && keep(t, all, own);
}

static bool
make_to_next(Tensor *t)
{
    if (t->c->call.position + 1 < t->c->call.members)
        move_range(t, true, t->c->call.position + 1, t->to, (Range){ 0, bytes_of(t->to) });
    return true;
}

static const Round kinds[LH_COLL_KINDS][ROUNDS_MAX] = {
    [LH_COLL_ALL_GATHER] = { { make_copies, NULL } },
    [LH_COLL_REDUCE_SCATTER] = { { make_slices, reduce_slices } },
    [LH_COLL_ALL_REDUCE] = { { make_slices, reduce_slices }, { make_reduced, NULL } },
    [LH_COLL_ALL_TO_ALL] = { { make_copies, NULL } },
    [LH_COLL_BROADCAST] = { { make_from_before, NULL }, { make_to_next, NULL } },
};

/* ---- the whole ---- */

static const Round *
round_of(const LhItem *item)
{
    return &kinds[item->op.collective.kind][item->round];
}

static void
start(LhRunStream *s, LhItem *item)
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
        c->tensors[i] = (Tensor){ .c = c,
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
        start(s, item);
    item->messages = g_new0(LhMessage, 2 * (gsize)item->run->call.members * count);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = round_of(item)->make(&item->run->tensors[i]);
    return ok;
}

bool
lh_collective_end_round(LhRunStream *s, LhItem *item)
{
    const Round *round = round_of(item);
    bool ok = true;

    (void)s;
    for (uint32_t i = 0; ok && i < item->op.collective.tensors_count && round->finish != NULL; i++)
        ok = round->finish(&item->run->tensors[i]);
    return ok;
}

bool
lh_collective_has_round(const LhItem *item)
{
    return item->round < ROUNDS_MAX && round_of(item)->make != NULL;
}
