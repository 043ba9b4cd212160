/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain interpreter of programs, the second judge of whether damage changes a step's result.
 * Every cell holds a number; a call hashes its inputs and writes the hash to its outputs, or adds
 * it; messages and collectives move and add numbers. Two programs are equivalent if they leave the
 * same numbers in all states and results. Shares no code with the verifier.
 */
#pragma once

#include "program/collective_semantics.h"
#include "recording.h"

#include <string.h>

typedef struct {
    const Recording *recording;
    uint32_t ranks, cells;
    uint64_t *tags;            /* [ranks * cells] */
    uint8_t **arrived, **done; /* [ranks][ops] */
    uint8_t **moved;           /* [ranks][messages] */
} Tags;

static inline uint64_t
tags_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2))) *
                 UINT64_C(0xbf58476d1ce4e5b9);

    return x ^ x >> 31;
}

static inline uint64_t *
tags_cell(const Tags *t, uint32_t rank, const LhRegion *region, uint32_t part)
{
    return &t->tags[(size_t)rank * t->cells + t->recording->program.slots[region->slot].first_cell +
                    region->part + part];
}

/* Replaces one half of a part: the low or the high bits. */
static inline uint64_t
tags_half(uint64_t before, uint64_t value, uint8_t half)
{
    const uint64_t low = UINT32_MAX;

    if (half == LH_HALF_BOTH)
        return value;
    return half == LH_HALF_K ? (before & ~low) | (value & low) : (before & low) | (value & ~low);
}

static inline void
tags_compute(Tags *t, uint32_t rank, const LhOp *op)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    LhKernelArgs args = op->compute.args;
    const uint8_t *bytes = (const uint8_t *)&args;
    uint64_t hash = (uint64_t)op->compute.kernel;

    args.first = false;
    if (kernel->args == LH_ARGS_ROWS)
        args.rows.adds = false;
    for (size_t i = 0; i < offsetof(LhKernelArgs, first); i++)
        hash = tags_mix(hash, bytes[i]);
    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        /* Without clipping the norm has no effect. */
        if (i == 1 && kernel->args == LH_ARGS_OPTIMIZER && args.optimizer.clip <= 0)
            continue;
        for (uint32_t k = 0;
             kernel->operands[i].access == LH_OPERAND_READ && k < op->compute.regions[i].count; k++)
            hash = tags_mix(hash, *tags_cell(t, rank, &op->compute.regions[i], k));
    }
    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhOperandAccess access = kernel->operands[i].access;
        const bool anew = lh_operand_is_overwritten(kernel, &op->compute.args, i);

        for (uint32_t k = 0; (access == LH_OPERAND_WRITE || access == LH_OPERAND_UPDATE) &&
                             k < op->compute.regions[i].count;
             k++) {
            uint64_t *cell = tags_cell(t, rank, &op->compute.regions[i], k);

            *cell = (anew ? 0 : *cell) + tags_mix(hash, 1000 * (i + 1) + k);
        }
    }
}

/* ---- messages ---- */

/* Index of part @part of op @id among the messages of the same direction, peer and communicator. */
static inline uint32_t
tags_message_turn(const Tags *t, uint32_t rank, uint32_t id, uint32_t part)
{
    const Recording *r = t->recording;
    const LhOp *op = recording_op(r, rank, id);
    const LhPart *message = recording_part(r, rank, op, part);
    uint32_t turn = 0;

    for (uint32_t i = 0; i <= id; i++) {
        const LhOp *other = recording_op(r, rank, i);

        for (uint32_t k = 0; other->kind == LH_OP_EXCHANGE && k < other->exchange.parts_count;
             k++) {
            const LhPart *m = recording_part(r, rank, other, k);

            if (i == id && k == part)
                return turn;
            turn += m->send == message->send && m->peer == message->peer &&
                    other->communicator == op->communicator;
        }
    }
    return turn;
}

/* Finds the other end of a message: its op and part; false if there is none. */
static inline bool
tags_partner(const Tags *t, uint32_t rank, uint32_t id, uint32_t part, uint32_t *other,
             uint32_t *other_part)
{
    const Recording *r = t->recording;
    const LhOp *op = recording_op(r, rank, id);
    const LhPart *message = recording_part(r, rank, op, part);
    uint32_t turn = tags_message_turn(t, rank, id, part);

    for (*other = 0; *other < recording_count(r, message->peer); (*other)++) {
        const LhOp *o = recording_op(r, message->peer, *other);

        for (*other_part = 0; o->kind == LH_OP_EXCHANGE && *other_part < o->exchange.parts_count;
             (*other_part)++) {
            const LhPart *m = recording_part(r, message->peer, o, *other_part);

            if (m->send != message->send && m->peer == rank &&
                o->communicator == op->communicator && turn-- == 0)
                return true;
        }
    }
    return false;
}

static inline void
tags_move(Tags *t, uint32_t from, const LhPart *s, uint32_t to, const LhPart *r)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    guint next = 0;

    for (uint32_t k = 0; k < s->regions_count; k++) {
        for (uint32_t i = 0; i < s->regions[k].count; i++)
            g_array_append_vals(values, tags_cell(t, from, &s->regions[k], i), 1);
    }
    for (uint32_t k = 0; k < r->regions_count; k++) {
        for (uint32_t i = 0; i < r->regions[k].count && next < values->len; i++) {
            uint64_t *cell = tags_cell(t, to, &r->regions[k], i);

            *cell = tags_half(*cell, g_array_index(values, uint64_t, next++), r->regions[k].half);
        }
    }
}

/* Moves the messages that can move; true if the exchange is complete. */
static inline bool
tags_exchange(Tags *t, uint32_t rank, uint32_t id)
{
    const Recording *r = t->recording;
    const LhOp *op = recording_op(r, rank, id);
    bool through = true;

    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *message = recording_part(r, rank, op, i);
        uint8_t *moved = &t->moved[rank][op->exchange.parts_first + i];
        uint32_t other, part;

        if (*moved)
            continue;
        if (!tags_partner(t, rank, id, i, &other, &part) || !t->arrived[message->peer][other]) {
            through = false;
            continue;
        }
        const LhOp *o = recording_op(r, message->peer, other);
        const LhPart *m = recording_part(r, message->peer, o, part);

        if (message->send)
            tags_move(t, rank, message, message->peer, m);
        else
            tags_move(t, message->peer, m, rank, message);
        *moved = t->moved[message->peer][o->exchange.parts_first + part] = 1;
    }
    return through;
}

/* ---- collectives ---- */

static inline bool
tags_same_communicator(const LhOp *a, const LhOp *b)
{
    const LhCommunicatorKey x = lh_op_communicator(a), y = lh_op_communicator(b);

    return lh_communicator_compare(&x, &y) == 0;
}

/* The op of @member that matches collective @id of @rank; LH_OP_NONE if there is none. */
static inline uint32_t
recording_meets(const Recording *r, uint32_t rank, uint32_t id, uint32_t member)
{
    const LhOp *op = recording_op(r, rank, id);
    uint32_t turn = 0;

    for (uint32_t i = 0; i < id; i++) {
        const LhOp *o = recording_op(r, rank, i);

        turn += o->kind == LH_OP_COLLECTIVE && tags_same_communicator(o, op);
    }
    for (uint32_t i = 0; i < recording_count(r, member); i++) {
        const LhOp *o = recording_op(r, member, i);

        if (o->kind == LH_OP_COLLECTIVE && tags_same_communicator(o, op) && turn-- == 0)
            return i;
    }
    return LH_OP_NONE;
}

/* One tensor of a collective, for its member @to. */
typedef struct {
    Tags *tags;
    const LhOp **ops; /* [members] */
    uint32_t *ranks;  /* likewise */
    uint32_t members, tensor;
    const uint64_t *before; /* all tags before the collective */
} TagsMeeting;

static inline LhCollectiveCall
tags_call(const TagsMeeting *m, uint32_t i)
{
    const GArray *counts = m->tags->recording->counts[m->ranks[i]];

    return lh_collective_call(m->ops[i], (const uint32_t *)(const void *)counts->data, m->ranks[i]);
}

static inline void
tags_receive(const TagsMeeting *m, uint32_t to)
{
    Tags *t = m->tags;
    const LhRegion *receive = &m->ops[to]->collective.receive[m->tensor];
    const LhCollectiveCall receiver = tags_call(m, to);
    const bool adds = lh_collective_reduces(m->ops[to]->collective.kind);

    for (uint32_t i = 0; adds && i < receive->count; i++)
        *tags_cell(t, m->ranks[to], receive, i) = 0;
    for (uint32_t j = 0; j < m->members; j++) {
        const LhCollectiveCall sender = tags_call(m, j);
        const LhRegion *send = &m->ops[j]->collective.send[m->tensor];
        const LhShare sent = lh_collective_sends(&sender, m->tensor, to);
        const LhShare landed = lh_collective_receives(&receiver, m->tensor, j);

        for (uint32_t i = 0; i < sent.count; i++) {
            uint64_t *cell = tags_cell(t, m->ranks[to], receive, (adds ? 0 : landed.first) + i);
            const uint64_t value =
                m->before[tags_cell(t, m->ranks[j], send, sent.first + i) - t->tags];

            *cell = adds ? *cell + value : tags_half(*cell, value, receive->half);
        }
    }
}

/* Executes a collective if all members have arrived; true if it did. */
static inline bool
tags_collective(Tags *t, uint32_t rank, uint32_t id)
{
    const Recording *r = t->recording;
    const LhOp *op = recording_op(r, rank, id);
    const uint32_t members = (uint32_t)lh_group_size(&op->collective.group);
    g_autofree const LhOp **ops = g_new0(const LhOp *, members);
    g_autofree uint32_t *ranks = g_new0(uint32_t, members), *ids = g_new0(uint32_t, members);
    g_autofree uint64_t *before = NULL;

    for (uint32_t i = 0; i < members; i++) {
        ranks[i] = (uint32_t)lh_group_member(&op->collective.group, i);
        ids[i] = recording_meets(r, rank, id, ranks[i]);
        if (ids[i] == LH_OP_NONE || !t->arrived[ranks[i]][ids[i]])
            return false;
        ops[i] = recording_op(r, ranks[i], ids[i]);
    }
    before = g_memdup2(t->tags, (size_t)t->ranks * t->cells * sizeof(uint64_t));
    for (uint32_t tensor = 0; tensor < op->collective.tensors_count; tensor++) {
        const TagsMeeting m = { t, ops, ranks, members, tensor, before };

        for (uint32_t to = 0; to < members; to++)
            tags_receive(&m, to);
    }
    for (uint32_t i = 0; i < members; i++)
        t->done[ranks[i]][ids[i]] = 1;
    return true;
}

/* ---- the run ---- */

static inline bool
tags_may_start(const Tags *t, uint32_t rank, uint32_t id)
{
    const LhOp *op = recording_op(t->recording, rank, id);

    for (uint32_t i = 0; i < op->after_count; i++) {
        if (!t->done[rank][op->after[i]])
            return false;
    }
    for (uint32_t i = id; i-- > 0;) {
        const LhOp *o = recording_op(t->recording, rank, i);

        if (o->kind == LH_OP_SYNC || op->kind == LH_OP_SYNC || !lh_op_on_stream(op)) {
            if (!t->done[rank][i])
                return false;
            if (o->kind == LH_OP_SYNC)
                return true;
        } else if (lh_op_on_stream(o) && o->stream == op->stream) {
            return t->done[rank][i];
        }
    }
    return true;
}

/* Advances an op as far as possible; true if anything changed. */
static inline bool
tags_step(Tags *t, uint32_t rank, uint32_t id)
{
    const LhOp *op = recording_op(t->recording, rank, id);
    const bool arrived = t->arrived[rank][id];

    if (t->done[rank][id] || (!arrived && !tags_may_start(t, rank, id)))
        return false;
    t->arrived[rank][id] = 1;
    switch (op->kind) {
    case LH_OP_COMPUTE:
        tags_compute(t, rank, op);
        t->done[rank][id] = 1;
        return true;
    case LH_OP_EXCHANGE:
        t->done[rank][id] = tags_exchange(t, rank, id);
        return !arrived || t->done[rank][id];
    case LH_OP_COLLECTIVE:
        return tags_collective(t, rank, id) || !arrived;
    default:
        t->done[rank][id] = 1;
        return true;
    }
}

/* Runs a program to its end; the caller frees the tags with tags_free(). */
static inline Tags *
tags_run(const Recording *recording)
{
    Tags *t = g_new0(Tags, 1);
    bool progress = true;

    t->recording = recording;
    t->ranks = lh_program_ranks(&recording->program);
    t->cells = lh_program_cells(&recording->program);
    t->tags = g_new(uint64_t, (size_t)t->ranks * t->cells);
    t->arrived = g_new(uint8_t *, t->ranks);
    t->done = g_new(uint8_t *, t->ranks);
    t->moved = g_new(uint8_t *, t->ranks);
    /* Ranks that share a weight start from equal numbers; here it suffices that equal runs start
     * from equal numbers. */
    for (size_t i = 0; i < (size_t)t->ranks * t->cells; i++)
        t->tags[i] = tags_mix(i, 7);
    for (uint32_t rank = 0; rank < t->ranks; rank++) {
        t->arrived[rank] = g_new0(uint8_t, recording_count(recording, rank) + 1);
        t->done[rank] = g_new0(uint8_t, recording_count(recording, rank) + 1);
        t->moved[rank] = g_new0(uint8_t, recording->parts[rank]->len + 1);
    }
    while (progress) {
        progress = false;
        for (uint32_t rank = 0; rank < t->ranks; rank++) {
            for (uint32_t id = 0; id < recording_count(recording, rank); id++)
                progress |= tags_step(t, rank, id);
        }
    }
    return t;
}

static inline void
tags_free(Tags *t)
{
    for (uint32_t rank = 0; rank < t->ranks; rank++) {
        g_free(t->arrived[rank]);
        g_free(t->done[rank]);
        g_free(t->moved[rank]);
    }
    g_free(t->arrived);
    g_free(t->done);
    g_free(t->moved);
    g_free(t->tags);
    g_free(t);
}

/* Whether two runs leave equal tags in all persistent slots. */
static inline bool
tags_equal(const Tags *a, const Tags *b)
{
    const LhProgram *program = &a->recording->program;

    for (uint32_t rank = 0; rank < a->ranks; rank++) {
        for (uint32_t slot = 0; slot < program->slots_count; slot++) {
            const LhRegion whole = lh_region_whole(program, (uint16_t)slot);

            for (uint32_t part = 0;
                 lh_slot_is_result(&program->slots[slot]) && part < program->slots[slot].parts;
                 part++) {
                if (*tags_cell(a, rank, &whole, part) != *tags_cell(b, rank, &whole, part))
                    return false;
            }
        }
    }
    return true;
}
