/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the content of every part of every slot through a program: its segment of the sequence
 * and its slice of the heads. Inputs start with what holding.h assigns; messages and collectives
 * carry it between ranks; the result of a kernel belongs to the queries or the keys of the call. A
 * state of linear attention is identified by its border: the one before a segment.
 */
#pragma once

#include "checking.h"
#include "program/collective_semantics.h"
#include "program/holding.h"
#include "recording.h"

#define FOLLOWED_NONE UINT32_MAX

typedef struct {
    uint32_t communicator, from, to;
    bool received;
    GArray *held; /* of LhHolding */
} FollowedMessage;

typedef struct {
    uint32_t rank;
    LhCommunicatorKey key;
    const LhOp *op;
    GArray *held; /* of LhHolding: the send regions of all tensors, end to end */
} FollowedCall;

/* Called after each op of a rank, in order. */
typedef struct _Followed Followed;
typedef void (*FollowedVisit)(const Followed *f, uint32_t rank, const LhOp *op, void *data);

struct _Followed {
    const Recording *recording;
    const LhProgram *program;
    uint32_t ranks;
    GArray **held;       /* [ranks] of LhHolding, by cell */
    uint32_t *next;      /* [ranks] the next op */
    bool *posted;        /* [ranks] whether the current op's messages are sent */
    GPtrArray *messages; /* of FollowedMessage */
    GPtrArray *calls;    /* of FollowedCall */
};

static inline LhHolding *
followed_part(const Followed *f, uint32_t rank, LhRegion region, uint32_t part)
{
    const uint32_t cell = f->program->slots[region.slot].first_cell + region.part + part;

    return &g_array_index(f->held[rank], LhHolding, cell);
}

static inline void
followed_append(const Followed *f, uint32_t rank, LhRegion region, GArray *held)
{
    for (uint32_t i = 0; i < region.count; i++)
        g_array_append_val(held, *followed_part(f, rank, region, i));
}

typedef enum {
    FAMILY_QUERIES,
    FAMILY_KEYS,
    FAMILY_STATES,
    FAMILY_OTHER,
} FollowedFamily;

/* Maps a tensor to its family. Scores belong to the keys of their columns. */
static inline FollowedFamily
followed_family(LhTensorKind kind)
{
    switch (kind) {
    case LH_TENSOR_Q:
    case LH_TENSOR_ACC:
    case LH_TENSOR_OUT:
    case LH_TENSOR_O:
    case LH_TENSOR_LSE:
    case LH_TENSOR_DO:
    case LH_TENSOR_DELTA:
    case LH_TENSOR_DQ:
        return FAMILY_QUERIES;
    case LH_TENSOR_STATE:
    case LH_TENSOR_DSTATE:
        return FAMILY_STATES;
    case LH_TENSOR_HIDDEN:
    case LH_TENSOR_WEIGHT:
        return FAMILY_OTHER;
    default:
        return FAMILY_KEYS;
    }
}

static inline FollowedFamily
followed_operand_family(const Followed *f, const LhOp *op, unsigned operand)
{
    return followed_family(f->program->slots[op->compute.regions[operand].slot].kind);
}

/* Returns the first operand of @family that the kernel only reads; the number of operands if there
 * is none. */
static inline unsigned
followed_source(const Followed *f, const LhOp *op, FollowedFamily family)
{
    const LhOperand *operands = lh_kernels[op->compute.kernel]->operands;
    unsigned i = 0;

    while (i < op->compute.regions_count &&
           (operands[i].access != LH_OPERAND_READ || followed_operand_family(f, op, i) != family))
        i++;
    return i;
}

/* Returns the border of a resulting state. A sum of rows stands behind them, its gradient before
 * them; a state carried over a segment moves one border on; a sum of several states stands at the
 * outermost one. */
static inline LhHolding
followed_state(const Followed *f, uint32_t rank, const LhOp *op, LhRegion target, uint32_t part)
{
    const bool gradient = f->program->slots[target.slot].kind == LH_TENSOR_DSTATE;
    const LhEffect effect = lh_kernels[op->compute.kernel]->effect;
    const LhRegion source = op->compute.regions[0];
    LhHolding held = *followed_part(f, rank, source, part % source.count);
    const uint32_t sources = effect == LH_EFFECT_STATE_PREFIX ? source.count / target.count : 1;

    if (effect == LH_EFFECT_STATE_SUM && !gradient)
        held.segment++;
    if (effect == LH_EFFECT_STATE_CARRY)
        held.segment = gradient ? held.segment - 1 : held.segment + 1;
    for (uint32_t i = 1; i < sources; i++) {
        const uint32_t other = followed_part(f, rank, source, i * target.count + part)->segment;

        held.segment = gradient ? MIN(held.segment, other) : MAX(held.segment, other);
    }
    return held;
}

static inline void
followed_target(const Followed *f, uint32_t rank, const LhOp *op, unsigned operand)
{
    const LhRegion target = op->compute.regions[operand];
    const FollowedFamily family = followed_operand_family(f, op, operand);
    const LhEffect effect = lh_kernels[op->compute.kernel]->effect;
    const bool state_rule = effect == LH_EFFECT_STATE_SUM || effect == LH_EFFECT_STATE_CARRY ||
                            effect == LH_EFFECT_STATE_PREFIX;
    const unsigned from = followed_source(f, op, family);
    g_autoptr(GArray) held = g_array_new(FALSE, FALSE, sizeof(LhHolding));

    if (family == FAMILY_OTHER || (from == op->compute.regions_count && !state_rule))
        return;
    for (uint32_t i = 0; i < target.count; i++) {
        if (family == FAMILY_STATES && state_rule) {
            const LhHolding state = followed_state(f, rank, op, target, i);

            g_array_append_val(held, state);
        } else {
            const LhRegion source = op->compute.regions[from];
            const uint32_t at = i % source.count;

            g_array_append_val(
                held, *followed_part(f, rank, source,
                                     op->compute.args.reversed ? source.count - 1 - at : at));
        }
    }
    for (uint32_t i = 0; i < target.count; i++)
        *followed_part(f, rank, target, i) = g_array_index(held, LhHolding, i);
}

static inline bool
followed_compute(const Followed *f, uint32_t rank, const LhOp *op)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];

    for (unsigned i = 0; i < op->compute.regions_count; i++) {
        if (kernel->operands[i].access != LH_OPERAND_READ && kernel->args == LH_ARGS_ATTENTION)
            followed_target(f, rank, op, i);
    }
    return true;
}

static inline void
followed_send(Followed *f, uint32_t rank, const LhOp *op)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = recording_part(f->recording, rank, op, i);
        FollowedMessage *message;

        if (!part->send)
            continue;
        message = g_new0(FollowedMessage, 1);
        *message = (FollowedMessage){ op->communicator, rank, part->peer, false,
                                      g_array_new(FALSE, FALSE, sizeof(LhHolding)) };
        for (unsigned k = 0; k < part->regions_count; k++)
            followed_append(f, rank, part->regions[k], message->held);
        g_ptr_array_add(f->messages, message);
    }
}

/* Returns the next unreceived message to @rank from @part's peer on the op's communicator, skipping
 * @skipped; NULL if it is not sent yet. */
static inline FollowedMessage *
followed_message(const Followed *f, uint32_t rank, const LhOp *op, const LhPart *part,
                 uint32_t skipped)
{
    for (guint i = 0; i < f->messages->len; i++) {
        FollowedMessage *m = g_ptr_array_index(f->messages, i);

        if (!m->received && m->communicator == op->communicator && m->from == part->peer &&
            m->to == rank && skipped-- == 0)
            return m;
    }
    return NULL;
}

/* Number of receives before part @i of an exchange from the same peer. */
static inline uint32_t
followed_earlier(const Followed *f, uint32_t rank, const LhOp *op, uint32_t i)
{
    const LhPart *part = recording_part(f->recording, rank, op, i);
    uint32_t earlier = 0;

    while (i-- > 0) {
        const LhPart *other = recording_part(f->recording, rank, op, i);

        earlier += !other->send && other->peer == part->peer ? 1 : 0;
    }
    return earlier;
}

static inline void
followed_receive(const Followed *f, uint32_t rank, const LhPart *part, FollowedMessage *message)
{
    uint32_t at = 0;

    for (unsigned k = 0; k < part->regions_count; k++) {
        for (uint32_t i = 0; i < part->regions[k].count; i++)
            *followed_part(f, rank, part->regions[k], i) =
                g_array_index(message->held, LhHolding, at++);
    }
    ck_assert_uint_eq(at, message->held->len);
    message->received = true;
}

static inline bool
followed_exchange(Followed *f, uint32_t rank, const LhOp *op)
{
    if (!f->posted[rank])
        followed_send(f, rank, op);
    f->posted[rank] = true;
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = recording_part(f->recording, rank, op, i);

        if (!part->send &&
            followed_message(f, rank, op, part, followed_earlier(f, rank, op, i)) == NULL)
            return false;
    }
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = recording_part(f->recording, rank, op, i);

        if (!part->send)
            followed_receive(f, rank, part, followed_message(f, rank, op, part, 0));
    }
    return true;
}

/* Returns call @number of @rank on a communicator; NULL if it is not made yet. */
static inline const FollowedCall *
followed_call(const Followed *f, uint32_t rank, LhCommunicatorKey key, uint32_t number)
{
    for (guint i = 0; i < f->calls->len; i++) {
        const FollowedCall *call = g_ptr_array_index(f->calls, i);

        if (call->rank == rank && lh_communicator_compare(&call->key, &key) == 0 && number-- == 0)
            return call;
    }
    return NULL;
}

static inline void
followed_gather(const Followed *f, uint32_t rank, const LhOp *op, const FollowedCall *other)
{
    const uint32_t *mine = (const uint32_t *)(const void *)f->recording->counts[rank]->data;
    const uint32_t *theirs =
        (const uint32_t *)(const void *)f->recording->counts[other->rank]->data;
    const LhCollectiveCall to = lh_collective_call(op, mine, rank);
    const LhCollectiveCall from = lh_collective_call(other->op, theirs, other->rank);
    uint32_t before = 0;

    for (unsigned t = 0; t < op->collective.tensors_count; t++) {
        const LhShare sent = lh_collective_sends(&from, t, to.position);
        const LhShare got = lh_collective_receives(&to, t, from.position);

        for (uint32_t i = 0; i < MIN(sent.count, got.count); i++)
            *followed_part(f, rank, op->collective.receive[t], got.first + i) =
                g_array_index(other->held, LhHolding, before + sent.first + i);
        before += other->op->collective.send[t].count;
    }
}

static inline bool
followed_collective(Followed *f, uint32_t rank, const LhOp *op)
{
    const LhCommunicatorKey key = lh_op_communicator(op);
    const uint64_t members = lh_group_size(&op->collective.group);
    uint32_t number = 0;

    if (!f->posted[rank]) {
        FollowedCall *call = g_new0(FollowedCall, 1);

        *call = (FollowedCall){ rank, key, op, g_array_new(FALSE, FALSE, sizeof(LhHolding)) };
        for (unsigned t = 0; t < op->collective.tensors_count; t++)
            followed_append(f, rank, op->collective.send[t], call->held);
        g_ptr_array_add(f->calls, call);
    }
    f->posted[rank] = true;
    while (followed_call(f, rank, key, number + 1) != NULL)
        number++;
    for (uint64_t i = 0; i < members; i++) {
        const uint32_t member = (uint32_t)lh_group_member(&op->collective.group, i);

        if (followed_call(f, member, key, number) == NULL)
            return false;
    }
    for (uint64_t i = 0; i < members; i++) {
        const uint32_t member = (uint32_t)lh_group_member(&op->collective.group, i);

        followed_gather(f, rank, op, followed_call(f, member, key, number));
    }
    return true;
}

/* Executes an op. Returns false if it must wait for another rank. */
static inline bool
followed_do(Followed *f, uint32_t rank, const LhOp *op)
{
    switch (op->kind) {
    case LH_OP_COMPUTE:
        return followed_compute(f, rank, op);
    case LH_OP_EXCHANGE:
        return followed_exchange(f, rank, op);
    case LH_OP_COLLECTIVE:
        return followed_collective(f, rank, op);
    default:
        return true;
    }
}

/* Initialises a rank's parts: inputs hold what holding.h assigns, all others are unknown. */
static inline void
followed_begin(Followed *f, uint32_t rank)
{
    const LhHolding unknown = { FOLLOWED_NONE, FOLLOWED_NONE };

    f->held[rank] = g_array_new(FALSE, FALSE, sizeof(LhHolding));
    for (uint32_t i = 0; i < lh_program_cells(f->program); i++)
        g_array_append_val(f->held[rank], unknown);
    for (uint16_t s = 0; s < f->program->slots_count; s++) {
        const LhSlot *slot = &f->program->slots[s];

        for (uint32_t i = 0; slot->role == LH_SLOT_INPUT && i < slot->parts; i++)
            *followed_part(f, rank, (LhRegion){ s, 0, slot->parts }, i) =
                lh_slot_holding(f->program, slot, rank, i);
    }
}

static inline void
followed_end(Followed *f)
{
    for (guint i = 0; i < f->messages->len; i++)
        g_array_unref(((FollowedMessage *)g_ptr_array_index(f->messages, i))->held);
    for (guint i = 0; i < f->calls->len; i++)
        g_array_unref(((FollowedCall *)g_ptr_array_index(f->calls, i))->held);
    for (uint32_t rank = 0; rank < f->ranks; rank++)
        g_array_unref(f->held[rank]);
    g_ptr_array_unref(f->messages);
    g_ptr_array_unref(f->calls);
    g_free(f->held);
    g_free(f->next);
    g_free(f->posted);
}

/* Runs @rank until it must wait for another one; returns whether it made progress. */
static inline bool
followed_advance(Followed *f, uint32_t rank, FollowedVisit visit, void *data)
{
    bool moved = false;

    while (f->next[rank] < recording_count(f->recording, rank)) {
        const LhOp *op = recording_op(f->recording, rank, f->next[rank]);
        const bool posted = f->posted[rank];

        if (!followed_do(f, rank, op))
            return moved || f->posted[rank] != posted;
        f->posted[rank] = false;
        f->next[rank]++;
        moved = true;
        visit(f, rank, op, data);
    }
    return moved;
}

/* Runs all ranks to completion; fails the test if the program deadlocks. */
static inline void
follow(const Recording *recording, FollowedVisit visit, void *data)
{
    const uint32_t ranks = lh_program_ranks(&recording->program);
    Followed f = { .recording = recording,
                   .program = &recording->program,
                   .ranks = ranks,
                   .held = g_new0(GArray *, ranks),
                   .next = g_new0(uint32_t, ranks),
                   .posted = g_new0(bool, ranks),
                   .messages = g_ptr_array_new_with_free_func(g_free),
                   .calls = g_ptr_array_new_with_free_func(g_free) };
    bool moved = true;

    for (uint32_t rank = 0; rank < ranks; rank++)
        followed_begin(&f, rank);
    while (moved) {
        moved = false;
        for (uint32_t rank = 0; rank < ranks; rank++)
            moved = followed_advance(&f, rank, visit, data) || moved;
    }
    for (uint32_t rank = 0; rank < ranks; rank++)
        ck_assert_uint_eq(f.next[rank], recording_count(recording, rank));
    followed_end(&f);
}
