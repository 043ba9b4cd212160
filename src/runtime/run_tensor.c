/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run_tensor.h"

#include "runtime/bind.h"

uint64_t
lh_bound_bytes(const LhBoundRegion *bound)
{
    return bound->region.count * bound->part_bytes;
}

LhByteRange
lh_bound_range(const LhBoundRegion *bound, LhShare share)
{
    return (LhByteRange){ share.first * bound->part_bytes, share.count * bound->part_bytes };
}

LhByteRange
lh_run_tensor_slice(const LhRunTensor *t, const LhBoundRegion *bound, uint32_t member)
{
    const LhCollectiveRun *c = t->c;

    if (c->call.op->collective.kind == LH_COLL_REDUCE_SCATTER)
        return lh_bound_range(bound, lh_collective_sends(&c->call, t->index, member));
    return (LhByteRange){ member * (lh_bound_bytes(bound) / c->call.members),
                          lh_bound_bytes(bound) / c->call.members };
}

/* Cuts a range into pieces, each as long as possible; @pieces has room for one per part. */
static uint32_t
cut_range(const LhBoundRegion *bound, LhByteRange range, LhPiece *pieces)
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
copy_bytes(const LhRunTensor *t, unsigned char *to, const unsigned char *from, uint64_t bytes)
{
    const LhPlaceOfWork *at = &t->c->stream->at;
    GError *error = NULL;

    if (at->device->copy(at->state, to, from, bytes, at->stream, &error))
        return true;
    lh_execution_fail(t->c->stream->rank->execution, error);
    return false;
}

unsigned char *
lh_run_tensor_temporary(const LhRunTensor *t, uint64_t bytes)
{
    return lh_item_temporary(t->c->stream, t->c->item, bytes);
}

/* Host memory for the pieces of a region. */
static LhPiece *
room_for_pieces(const LhRunTensor *t, const LhBoundRegion *bound)
{
    return lh_item_memory(t->c->item, MAX(bound->region.count, 1) * sizeof(LhPiece));
}

bool
lh_run_tensor_take(const LhRunTensor *t, LhByteRange range, unsigned char *memory)
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

bool
lh_run_tensor_are_apart(const LhRunTensor *t)
{
    return t->from->region.slot != t->to->region.slot;
}

unsigned char *
lh_run_tensor_in_place(const LhRunTensor *t, const LhBoundRegion *bound, LhByteRange range)
{
    LhPiece *pieces = room_for_pieces(t, bound);

    return cut_range(bound, range, pieces) == 1 ? pieces[0].data : NULL;
}

unsigned char *
lh_run_tensor_copy(const LhRunTensor *t, LhByteRange range)
{
    unsigned char *memory = lh_run_tensor_temporary(t, range.count);

    return memory != NULL && lh_run_tensor_take(t, range, memory) ? memory : NULL;
}

bool
lh_run_tensor_keep(const LhRunTensor *t, LhByteRange range, const unsigned char *memory)
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

bool
lh_run_tensor_lay(const LhRunTensor *t, LhByteRange to, LhByteRange from)
{
    LhPiece *pieces = room_for_pieces(t, t->from);
    const uint32_t count = cut_range(t->from, from, pieces);

    for (uint32_t i = 0; i < count; i++) {
        if (!lh_run_tensor_keep(t, (LhByteRange){ to.from, pieces[i].bytes }, pieces[i].data))
            return false;
        to.from += pieces[i].bytes;
    }
    return true;
}

static LhMessage *
add_message(const LhRunTensor *t, bool send, uint32_t member)
{
    LhCollectiveRun *c = t->c;
    LhMessage *m = &c->item->messages[c->item->messages_count++];

    m->send = send;
    m->peer = (uint32_t)lh_group_member(&c->call.op->collective.group, member);
    m->channel = c->channel;
    m->slot = send ? t->from->region.slot : t->to->region.slot;
    return m;
}

void
lh_run_tensor_move(const LhRunTensor *t, bool send, uint32_t member, const LhBoundRegion *bound,
                   LhByteRange range)
{
    LhMessage *m;

    if (range.count == 0)
        return;
    m = add_message(t, send, member);
    m->pieces = room_for_pieces(t, bound);
    m->pieces_count = cut_range(bound, range, m->pieces);
    m->bytes = range.count;
}

void
lh_run_tensor_move_memory(const LhRunTensor *t, bool send, uint32_t member, unsigned char *memory,
                          uint64_t bytes)
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

uint32_t
lh_collective_further(const LhCollectiveRun *c, uint32_t distance)
{
    return (c->call.position + distance) % c->call.members;
}

uint32_t
lh_collective_before(const LhCollectiveRun *c, uint32_t distance)
{
    return lh_collective_further(c, c->call.members - distance);
}

LhByteRange
lh_run_tensor_block(const LhRunTensor *t, uint32_t member)
{
    if (t->c->call.op->collective.kind == LH_COLL_ALL_REDUCE)
        return lh_run_tensor_slice(t, t->to, member);
    return lh_bound_range(t->to, lh_collective_receives(&t->c->call, t->index, member));
}
