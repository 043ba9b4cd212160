/*
 * Collectives made of messages, the same over every transport and all links, as the simulator's
 * algorithms of the same names have them (sim/network/collectives). A rank sends as many bytes by
 * each of them, and bits do not depend on timing: sent straight to where they belong, terms are
 * added up by the receiver in the order of the group; in a ring each member adds its own to what
 * has come so far, rounded to the type of the tensor. A region counts as its parts laid end to end.
 * Tensors of one collective travel together.
 */
#include "runtime/execution.h"

#include "base/error.h"
#include "program/holding.h"

typedef LhCollectiveRun Collective;

/* One of its tensors. */
typedef struct {
    Collective *c;
    uint32_t index;
    const LhBottleneck *from, *to;
    unsigned char *own;     /* a copy of what is sent; NULL: it is sent from where it lies */
    unsigned char **blocks; /* of reductions: what is added up, in order ... */
    uint32_t blocks_count;
    unsigned char *sum; /* ... into this, in a ring; or what the links' library makes of it */
} Tensor;

struct _LhCollectiveRun {
    LhRunStream *stream;
    LhItem *item; /* it makes the messages of */
    const LhProgram *program;
    LhCollectiveCall call;
    uint32_t channel;
    uint32_t phase, step; /* the round's: which of its phases it belongs to, and the how-manieth */
    Tensor tensors[LH_COLLECTIVE_TENSORS_MAX];
};

/*
 * A kind of collective consists of phases, and a phase of one round of messages or several. Every
 * tensor makes its messages of a round; when all of them have arrived, every tensor finishes the
 * round. False: the run has failed. What is asked of the device in between is done in the order of
 * the stream.
 */
typedef struct {
    bool (*make)(Tensor *);
    bool (*finish)(Tensor *);               /* NULL: nothing is left to do */
    uint32_t (*rounds)(const Collective *); /* NULL: one */
} Phase;

#define PHASES_MAX 2

/* Bytes [from, from + count) of a region. */
typedef struct {
    uint64_t from, count;
} Range;

static bool
fail_collective(const Collective *c, LhErrorCode code, const char *what)
{
    return lh_execution_fail_op(c->stream->rank, &c->item->op, (int)code, "%s", what);
}

static uint64_t
region_bytes(const LhBottleneck *bound)
{
    return bound->region.count * bound->part_bytes;
}

static Range
range_of(const LhBottleneck *bound, LhShare share)
{
    return (Range){ share.first * bound->part_bytes, share.count * bound->part_bytes };
}

/* The byte slice of a reduction that belongs to member @member, of a region or its sum. */
static Range
slice_of(const Tensor *t, const LhBottleneck *bound, uint32_t member)
{
    const Collective *c = t->c;

    if (c->call.op->collective.kind == LH_COLL_REDUCE_SCATTER)
        return range_of(bound, lh_collective_sends(&c->call, t->index, member));
    return (Range){ member * (region_bytes(bound) / c->call.members),
                    region_bytes(bound) / c->call.members };
}

/* ---- memory ---- */

/* The pieces of a range, each as long as it can be; @pieces has room for one of each part. */
static uint32_t
cut_range(const LhBottleneck *bound, Range range, LhPiece *pieces)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < bound->region.count && range.count > 0; i++) {
        const uint64_t skipped = MIN(range.from, bound->part_bytes);
        const uint64_t here = MIN(range.count, bound->part_bytes - skipped);
        unsigned char *data = bound->parts[i] + skipped;

        if (here > 0 && count > 0 && pieces[count - 1].data + pieces[count - 1].bytes == data)
            pieces[count - 1].bytes += here;
        else if (here > 0)
            pieces[count++] = (LhPiece){ data, here };
        range.from -= skipped;
        range.count -= here;
    }
    g_assert(range.count == 0);
    return count;
}

static bool
copy_bytes(const Tensor *t, unsigned char *to, const unsigned char *from, uint64_t bytes)
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
room_for_pieces(const Tensor *t, const LhBottleneck *bound)
{
    return lh_item_memory(t->c->item, MAX(bound->region.count, 1) * sizeof(LhPiece));
}

/* Copies a range of the send region. */
static bool
take_range(const Tensor *t, Range range, unsigned char *memory)
{
    LhPiece *pieces = room_for_pieces(t, t->from);
    const uint32_t count = cut_range(t->from, range, pieces);

    for (uint32_t i = 0; i < count; i++) {
        if (!copy_bytes(t, memory, pieces[i].data, pieces[i].bytes))
            return false;
        memory += pieces[i].bytes;
    }
    return true;
}

/* Whether nothing that is received can land on what is sent. */
static bool
are_apart(const Tensor *t)
{
    return t->from->region.slot != t->to->region.slot;
}

/* A range where it lies, if it lies in one piece, else NULL. */
static unsigned char *
in_place(const Tensor *t, const LhBottleneck *bound, Range range)
{
    LhPiece *pieces = room_for_pieces(t, bound);

    return cut_range(bound, range, pieces) == 1 ? pieces[0].data : NULL;
}

/* A copy of a range of the send region, which the receive region may overlap; NULL: failed. */
static unsigned char *
own_copy(const Tensor *t, Range range)
{
    unsigned char *memory = temporary(t, range.count);

    return memory != NULL && take_range(t, range, memory) ? memory : NULL;
}

/* Puts memory into a range of the receive region. */
static bool
keep(const Tensor *t, Range range, const unsigned char *memory)
{
    LhPiece *pieces = room_for_pieces(t, t->to);
    const uint32_t count = cut_range(t->to, range, pieces);

    for (uint32_t i = 0; i < count; i++) {
        if (!copy_bytes(t, pieces[i].data, memory, pieces[i].bytes))
            return false;
        memory += pieces[i].bytes;
    }
    return true;
}

/* Puts a range of the send region into one of the receive region that is as long. */
static bool
lay(const Tensor *t, Range to, Range from)
{
    LhPiece *pieces = room_for_pieces(t, t->from);
    const uint32_t count = cut_range(t->from, from, pieces);

    for (uint32_t i = 0; i < count; i++) {
        if (!keep(t, (Range){ to.from, pieces[i].bytes }, pieces[i].data))
            return false;
        to.from += pieces[i].bytes;
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
move_range(const Tensor *t, bool send, uint32_t member, const LhBottleneck *bound, Range range)
{
    LhMessage *m;

    if (range.count == 0)
        return;
    m = add_message(t, send, member);
    m->pieces = room_for_pieces(t, bound);
    m->pieces_count = cut_range(bound, range, m->pieces);
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

/* ---- rings and pairs ---- */

static uint32_t
one_for_each_other(const Collective *c)
{
    return c->call.members - 1;
}

/* The member @distance behind this one, in the order of the group; less than all members. */
static uint32_t
further(const Collective *c, uint32_t distance)
{
    return (c->call.position + distance) % c->call.members;
}

static uint32_t
before(const Collective *c, uint32_t distance)
{
    return further(c, c->call.members - distance);
}

/* Whom this member exchanges with in a step of an all-to-all, from 1 on: its partner if there is
 * one for each, else one further and one back by as many. */
static uint32_t
sends_to(const Collective *c, uint32_t step)
{
    const bool paired = (c->call.members & (c->call.members - 1)) == 0;

    return paired ? c->call.position ^ step : further(c, step);
}

static uint32_t
receives_from(const Collective *c, uint32_t step)
{
    const bool paired = (c->call.members & (c->call.members - 1)) == 0;

    return paired ? c->call.position ^ step : before(c, step);
}

/* ---- copying kinds: all-gather, all-to-all ---- */

/* If the send region may be a part of the receive region, what is sent is copied first. */
static bool
copy_own(Tensor *t)
{
    const LhCollectiveCall *call = &t->c->call;
    const Range own = range_of(t->from, lh_collective_sends(call, t->index, call->position));
    const Range place = range_of(t->to, lh_collective_receives(call, t->index, call->position));

    if (are_apart(t))
        return lay(t, place, own);
    t->own = own_copy(t, (Range){ 0, region_bytes(t->from) });
    return t->own != NULL && keep(t, place, t->own + own.from);
}

static void
send_to(const Tensor *t, uint32_t member)
{
    const Range sent = range_of(t->from, lh_collective_sends(&t->c->call, t->index, member));

    if (t->own == NULL)
        move_range(t, true, member, t->from, sent);
    else
        move_memory(t, true, member, t->own + sent.from, sent.count);
}

static void
receive_from(const Tensor *t, uint32_t member)
{
    move_range(t, false, member, t->to,
               range_of(t->to, lh_collective_receives(&t->c->call, t->index, member)));
}

static bool
make_copies(Tensor *t)
{
    const Collective *c = t->c;

    if (!copy_own(t))
        return false;
    for (uint32_t k = 0; k < c->call.members; k++) {
        if (k == c->call.position)
            continue;
        send_to(t, k);
        receive_from(t, k);
    }
    return true;
}

static bool
make_pair(Tensor *t)
{
    const Collective *c = t->c;

    if (c->step == 0 && !copy_own(t))
        return false;
    send_to(t, sends_to(c, c->step + 1));
    receive_from(t, receives_from(c, c->step + 1));
    return true;
}

/* What lands of member @member, of an all-gather or of the second half of an all-reduce. */
static Range
block_of(const Tensor *t, uint32_t member)
{
    if (t->c->call.op->collective.kind == LH_COLL_ALL_REDUCE)
        return slice_of(t, t->to, member);
    return range_of(t->to, lh_collective_receives(&t->c->call, t->index, member));
}

/* Passes on the block that has come last, this rank's own at first. */
static bool
pass_block(Tensor *t)
{
    const Collective *c = t->c;

    move_range(t, true, further(c, 1), t->to, block_of(t, before(c, c->step)));
    move_range(t, false, before(c, 1), t->to, block_of(t, before(c, c->step + 1)));
    return true;
}

static bool
gather_in_ring(Tensor *t)
{
    return (t->c->step > 0 || copy_own(t)) && pass_block(t);
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
                              .count = t->blocks_count,
                              .sum = into,
                              .elements = bytes / lh_slot_element_bytes(slot),
                              .storage = lh_dtype_storage(slot->dtype) };

    if (at->device->sum(at->state, &add, at->stream) != LH_STATUS_OK)
        return fail_collective(c, LH_ERROR_NO, "the device cannot add up tensors of this type");
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
    for (uint32_t k = 0; k <= t->blocks_count; k++) {
        const bool rounds = k == t->blocks_count;
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

    t->blocks_count = c->call.members;
    t->blocks = lh_item_memory(c->item, c->call.members * sizeof(*t->blocks));
    t->blocks[self] = in_place(t, t->from, own);
    if (t->blocks[self] == NULL)
        t->blocks[self] = own_copy(t, own);
    for (uint32_t k = 0; k < c->call.members; k++) {
        if (k != self)
            t->blocks[k] = temporary(t, own.count);
        if (t->blocks[k] == NULL)
            return false;
        if (k == self)
            continue;
        move_range(t, true, k, t->from, slice_of(t, t->from, k));
        move_memory(t, false, k, t->blocks[k], own.count);
    }
    return true;
}

static bool
reduce_into(const Tensor *t, uint64_t bytes, unsigned char *into)
{
    return (t->c->call.op->collective.reduction == LH_REDUCE_SUM ? sum : merge)(t, bytes, into);
}

/* Where this rank's reduced slice belongs in the receive region: all of it, or its slice. */
static Range
place_of_slice(const Tensor *t)
{
    const bool scatter = t->c->call.op->collective.kind == LH_COLL_REDUCE_SCATTER;
    const Range own = slice_of(t, t->from, t->c->call.position);

    return scatter ? (Range){ 0, own.count } : own;
}

static bool
reduce_slices(Tensor *t)
{
    const Range place = place_of_slice(t);
    unsigned char *result = are_apart(t) ? in_place(t, t->to, place) : NULL;

    if (result != NULL)
        return reduce_into(t, place.count, result);
    result = temporary(t, place.count);
    return result != NULL && reduce_into(t, place.count, result) && keep(t, place, result);
}

/* The first block is what comes, the second this rank's own; their sum is sent on. */
static bool
room_for_sums(Tensor *t)
{
    const uint64_t bytes = slice_of(t, t->from, t->c->call.position).count;

    t->blocks_count = 2;
    t->blocks = lh_item_memory(t->c->item, t->blocks_count * sizeof(*t->blocks));
    t->blocks[0] = temporary(t, bytes);
    t->blocks[1] = temporary(t, bytes);
    t->sum = temporary(t, bytes);
    return t->blocks[0] != NULL && t->blocks[1] != NULL && t->sum != NULL;
}

/* A slice goes round from the member behind its own one, which so adds the last term. */
static bool
make_sum(Tensor *t)
{
    const Collective *c = t->c;
    const Range sent = slice_of(t, t->from, before(c, c->step + 1));

    if (c->step == 0 && !room_for_sums(t))
        return false;
    if (c->step == 0)
        move_range(t, true, further(c, 1), t->from, sent);
    else
        move_memory(t, true, further(c, 1), t->sum, sent.count);
    move_memory(t, false, before(c, 1), t->blocks[0], sent.count);
    return true;
}

static bool
add_to_sum(Tensor *t)
{
    const Collective *c = t->c;
    const uint32_t distance = (c->step + 2) % c->call.members;
    const Range own = slice_of(t, t->from, before(c, distance));

    return take_range(t, own, t->blocks[1]) && reduce_into(t, own.count, t->sum) &&
           (distance > 0 || keep(t, place_of_slice(t), t->sum));
}

/* All-reduce: slices are reduced where they belong, then gathered. */
static bool
make_reduced(Tensor *t)
{
    const Collective *c = t->c;

    for (uint32_t k = 0; k < c->call.members; k++) {
        if (k == c->call.position)
            continue;
        move_range(t, true, k, t->to, block_of(t, c->call.position));
        move_range(t, false, k, t->to, block_of(t, k));
    }
    return true;
}

/* ---- broadcast: a chain in the order of the group ---- */

static bool
make_from_before(Tensor *t)
{
    const Range all = { 0, region_bytes(t->to) };
    unsigned char *own;

    if (t->c->call.position > 0) {
        move_range(t, false, t->c->call.position - 1, t->to, all);
        return true;
    }
    if (are_apart(t))
        return lay(t, all, all);
    own = own_copy(t, all);
    return own != NULL && keep(t, all, own);
}

static bool
make_to_next(Tensor *t)
{
    if (t->c->call.position + 1 < t->c->call.members)
        move_range(t, true, t->c->call.position + 1, t->to, (Range){ 0, region_bytes(t->to) });
    return true;
}

/* ---- the library's own ---- */

static bool
call_library(Tensor *t)
{
    const Collective *c = t->c;
    const LhOp *op = c->call.op;
    const LhSlot *slot = &c->program->slots[t->from->region.slot];
    LhNcclMeasuredCall *call = &c->item->native[c->item->native_count++];

    t->own = own_copy(t, (Range){ 0, region_bytes(t->from) });
    t->sum = temporary(t, region_bytes(t->to));
    if (t->own == NULL || t->sum == NULL)
        return false;
    *call = (LhNcclMeasuredCall){ .kind = op->collective.kind,
                                  .storage = lh_dtype_storage(slot->dtype),
                                  .from = t->own,
                                  .to = t->sum,
                                  .from_bytes = region_bytes(t->from),
                                  .to_bytes = region_bytes(t->to),
                                  .stream = c->stream->at.stream };
    return true;
}

/* Its bytes are counted by formula: only the library knows what it sends. */
static bool
keep_result(Tensor *t)
{
    const Collective *c = t->c;
    const LhOp *op = c->call.op;
    const uint64_t whole = region_bytes(t->from);
    const bool is_cut = lh_collective_reduces(op->collective.kind);

    c->item->bytes +=
        lh_collective_bytes_sent(op->collective.kind, &op->collective.group, c->stream->rank->index,
                                 is_cut ? whole / c->call.members : whole);
    return keep(t, (Range){ 0, region_bytes(t->to) }, t->sum);
}

/* Broadcasts by messages are the same by all. */
static const Phase phases[][LH_COLL_KINDS][PHASES_MAX] = {
    [LH_WAY_DIRECT] = {
        [LH_COLL_ALL_GATHER] = { { make_copies } },
        [LH_COLL_REDUCE_SCATTER] = { { make_slices, reduce_slices } },
        [LH_COLL_ALL_REDUCE] = { { make_slices, reduce_slices }, { make_reduced } },
        [LH_COLL_ALL_TO_ALL] = { { make_copies } },
        [LH_COLL_BROADCAST] = { { make_from_before }, { make_to_next } },
    },
    [LH_WAY_RING] = {
        [LH_COLL_ALL_GATHER] = { { gather_in_ring, NULL, one_for_each_other } },
        [LH_COLL_REDUCE_SCATTER] = { { make_sum, add_to_sum, one_for_each_other } },
        [LH_COLL_ALL_REDUCE] = { { make_sum, add_to_sum, one_for_each_other },
                                 { pass_block, NULL, one_for_each_other } },
        [LH_COLL_ALL_TO_ALL] = { { make_copies } },
        [LH_COLL_BROADCAST] = { { make_from_before }, { make_to_next } },
    },
    [LH_WAY_PAIRWISE] = {
        [LH_COLL_ALL_GATHER] = { { gather_in_ring, NULL, one_for_each_other } },
        [LH_COLL_REDUCE_SCATTER] = { { make_sum, add_to_sum, one_for_each_other } },
        [LH_COLL_ALL_REDUCE] = { { make_sum, add_to_sum, one_for_each_other },
                                 { pass_block, NULL, one_for_each_other } },
        [LH_COLL_ALL_TO_ALL] = { { make_pair, NULL, one_for_each_other } },
        [LH_COLL_BROADCAST] = { { make_from_before }, { make_to_next } },
    },
    [LH_WAY_NATIVE] = {
        [LH_COLL_ALL_GATHER] = { { call_library, keep_result } },
        [LH_COLL_REDUCE_SCATTER] = { { call_library, keep_result } },
        [LH_COLL_ALL_REDUCE] = { { call_library, keep_result } },
        [LH_COLL_ALL_TO_ALL] = { { make_copies } },
        [LH_COLL_BROADCAST] = { { call_library, keep_result } },
    },
};

/* ---- the whole ---- */

/* A group of one has nobody to send to, and no library merges attention. */
static LhCollectiveWay
way_of(const Collective *c)
{
    const LhOp *op = c->call.op;
    const LhCollectiveWay way = c->stream->rank->execution->params->collectives;
    const bool merges =
        lh_collective_reduces(op->collective.kind) && op->collective.reduction != LH_REDUCE_SUM;

    return c->call.members == 1 || (merges && way == LH_WAY_NATIVE) ? LH_WAY_DIRECT : way;
}

static const Phase *
phase_of(const Collective *c)
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
        start_collective(s, item);
    item->messages = g_new0(LhMessage, 2 * (gsize)item->run->call.members * count);
    item->native = g_new0(LhNcclMeasuredCall, count);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = phase_of(item->run)->make(&item->run->tensors[i]);
    return ok;
}

bool
lh_collective_end_round(LhItem *item)
{
    Collective *c = item->run;
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
