/* SPDX-License-Identifier: Apache-2.0 */
/* Share offsets of each kind of collective. */
#include "program/collective_semantics.h"

#include <stddef.h>

LhCollectiveCall
lh_collective_call(const LhOp *op, const uint32_t *counts, uint32_t rank)
{
    return (LhCollectiveCall){
        .op = op,
        .counts = op->collective.uneven ? counts + op->collective.counts_first : NULL,
        .members = (uint32_t)lh_group_size(&op->collective.group),
        .position = lh_group_position(&op->collective.group, rank),
    };
}

/* The parts of a tensor sent to (or received from) each member of an uneven call. */
static const uint32_t *
counts_of(const LhCollectiveCall *call, uint32_t tensor, bool received)
{
    return call->counts + (2 * (size_t)tensor + (received ? 1 : 0)) * call->members;
}

static LhShare
counted_piece(const LhCollectiveCall *call, uint32_t tensor, bool received, uint32_t index)
{
    const uint32_t *counts = counts_of(call, tensor, received);
    LhShare piece = { .count = counts[index] };

    for (uint32_t i = 0; i < index; i++)
        piece.first += counts[i];
    return piece;
}

/* Piece @index of @parts parts split evenly. */
static LhShare
even_piece(const LhCollectiveCall *call, uint32_t parts, uint32_t index)
{
    const uint32_t count = parts / call->members;

    return (LhShare){ index * count, count };
}

LhShare
lh_collective_sends(const LhCollectiveCall *call, uint32_t tensor, uint32_t to)
{
    const uint32_t parts = call->op->collective.send[tensor].count;

    if (call->counts != NULL)
        return counted_piece(call, tensor, false, to);
    switch (call->op->collective.kind) {
    case LH_COLL_REDUCE_SCATTER:
    case LH_COLL_ALL_TO_ALL:
        return even_piece(call, parts, to);
    case LH_COLL_BROADCAST:
        return (LhShare){ 0, call->position == 0 ? parts : 0 };
    default:
        return (LhShare){ 0, parts };
    }
}

LhShare
lh_collective_receives(const LhCollectiveCall *call, uint32_t tensor, uint32_t from)
{
    const uint32_t parts = call->op->collective.receive[tensor].count;

    if (call->counts != NULL)
        return counted_piece(call, tensor, true, from);
    switch (call->op->collective.kind) {
    case LH_COLL_ALL_GATHER:
    case LH_COLL_ALL_TO_ALL:
        return even_piece(call, parts, from);
    case LH_COLL_BROADCAST:
        return (LhShare){ 0, from == 0 ? parts : 0 };
    default:
        return (LhShare){ 0, parts };
    }
}

uint32_t
lh_collective_sent_parts(const LhCollectiveCall *call, uint32_t tensor, uint32_t to)
{
    return call->counts != NULL ? counts_of(call, tensor, false)[to]
                                : lh_collective_sends(call, tensor, to).count;
}

uint32_t
lh_collective_received_parts(const LhCollectiveCall *call, uint32_t tensor, uint32_t from)
{
    return call->counts != NULL ? counts_of(call, tensor, true)[from]
                                : lh_collective_receives(call, tensor, from).count;
}

bool
lh_collective_reduces(LhCollectiveKind kind)
{
    return kind == LH_COLL_REDUCE_SCATTER || kind == LH_COLL_ALL_REDUCE;
}

static bool
counts_fit(const LhCollectiveCall *call, uint32_t tensor)
{
    const uint32_t *sent = counts_of(call, tensor, false);
    const uint32_t *received = counts_of(call, tensor, true);
    uint64_t to_send = 0, to_receive = 0;

    for (uint32_t i = 0; i < call->members; i++) {
        to_send += sent[i];
        to_receive += received[i];
    }
    return to_send == call->op->collective.send[tensor].count &&
           to_receive == call->op->collective.receive[tensor].count;
}

bool
lh_collective_fits(const LhCollectiveCall *call, uint32_t tensor)
{
    const uint64_t send = call->op->collective.send[tensor].count;
    const uint64_t receive = call->op->collective.receive[tensor].count;

    if (call->counts != NULL)
        return call->op->collective.kind == LH_COLL_ALL_TO_ALL && counts_fit(call, tensor);
    switch (call->op->collective.kind) {
    case LH_COLL_ALL_GATHER:
        return receive == call->members * send;
    case LH_COLL_REDUCE_SCATTER:
        return send == call->members * receive;
    case LH_COLL_ALL_TO_ALL:
        return send == receive && send % call->members == 0;
    default:
        return send == receive;
    }
}

bool
lh_collective_is_in_place(const LhCollectiveCall *call, uint32_t tensor)
{
    const LhRegion *send = &call->op->collective.send[tensor];
    const LhRegion *receive = &call->op->collective.receive[tensor];

    switch (call->op->collective.kind) {
    case LH_COLL_ALL_GATHER:
        return send->part == receive->part + call->position * send->count;
    case LH_COLL_REDUCE_SCATTER:
        return receive->part == send->part + call->position * receive->count;
    case LH_COLL_ALL_REDUCE:
    case LH_COLL_BROADCAST:
        return send->part == receive->part;
    default:
        return false;
    }
}

uint64_t
lh_collective_bytes_sent(LhCollectiveKind kind, const LhGroup *group, uint32_t rank,
                         uint64_t shard_bytes)
{
    const uint64_t members = lh_group_size(group);

    switch (kind) {
    case LH_COLL_ALL_REDUCE:
        return 2 * (members - 1) * shard_bytes;
    case LH_COLL_ALL_TO_ALL:
        return shard_bytes / members * (members - 1);
    case LH_COLL_BROADCAST:
        return lh_group_position(group, rank) + 1 < members ? shard_bytes : 0;
    default:
        return (members - 1) * shard_bytes;
    }
}
