/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs held in memory op by op, which a test can write by hand or damage. A recording keeps the
 * slots, parameters and closed forms of its original program.
 */
#pragma once

#include "program/work.h"
#include "sched/schedule.h"

#include <stddef.h>
#include <string.h>

typedef struct {
    LhProgram program; /* the recorded program; borrows slots of the original */
    GArray **ops;      /* [ranks] of LhOp; parts_first indexes parts[rank], counts_first counts */
    GArray **parts;    /* [ranks] of LhPart */
    GArray **counts;   /* [ranks] of uint32_t */
} Recording;

static uint32_t
recording_steps(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 1;
}

static void
recording_emit(LhEmitter *e, uint32_t step)
{
    const Recording *recording = e->program->plan;
    const GArray *ops = recording->ops[e->rank];
    const GArray *parts = recording->parts[e->rank];
    const GArray *counts = recording->counts[e->rank];
    LhOpBuffer *b = e->buffer;

    (void)step;
    lh_op_buffer_reserve(b, ops->len, parts->len, counts->len);
    for (guint i = 0; i < parts->len; i++)
        b->parts[b->parts_count++] = g_array_index(parts, LhPart, i);
    for (guint i = 0; i < counts->len; i++)
        b->counts[b->counts_count++] = g_array_index(counts, uint32_t, i);
    for (guint i = 0; i < ops->len; i++) {
        lh_emit_sync(e);
        *lh_emit_last(e) = g_array_index(ops, LhOp, i);
    }
}

static const LhGenerator recording_generator = {
    .steps = recording_steps,
    .emit = recording_emit,
    .of_all_groups = true,
};

static inline void
record_rank(Recording *recording, const LhProgram *original, uint32_t rank)
{
    GArray *ops = g_array_new(FALSE, FALSE, sizeof(LhOp));
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(LhPart));
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    recording->ops[rank] = ops;
    recording->parts[rank] = parts;
    recording->counts[rank] = counts;
    lh_cursor_init(&cursor, original, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            LhOp op = buffer.ops[i];

            if (op.kind == LH_OP_EXCHANGE)
                op.exchange.parts_first += parts->len;
            if (op.kind == LH_OP_COLLECTIVE && op.collective.uneven)
                op.collective.counts_first += counts->len;
            g_array_append_val(ops, op);
        }
        if (buffer.parts_count > 0)
            g_array_append_vals(parts, buffer.parts, buffer.parts_count);
        if (buffer.counts_count > 0)
            g_array_append_vals(counts, buffer.counts, buffer.counts_count);
    }
    lh_op_buffer_clear(&buffer);
}

/* Records a program. The original must outlive the recording. */
static inline Recording *
recording_new(const LhProgram *original)
{
    const uint32_t ranks = lh_program_ranks(original);
    Recording *recording = g_new0(Recording, 1);

    recording->program = *original;
    recording->program.generator = &recording_generator;
    recording->program.plan = recording;
    recording->ops = g_new0(GArray *, ranks);
    recording->parts = g_new0(GArray *, ranks);
    recording->counts = g_new0(GArray *, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++)
        record_rank(recording, original, rank);
    return recording;
}

static inline void
recording_free(Recording *recording)
{
    for (uint32_t rank = 0; rank < lh_program_ranks(&recording->program); rank++) {
        g_array_unref(recording->ops[rank]);
        g_array_unref(recording->parts[rank]);
        g_array_unref(recording->counts[rank]);
    }
    g_free(recording->ops);
    g_free(recording->parts);
    g_free(recording->counts);
    g_free(recording);
}

static inline void
restore_array(GArray *array, const GArray *from)
{
    g_assert(from != NULL);
    g_array_set_size(array, 0);
    if (from->len > 0)
        g_array_append_vals(array, from->data, from->len);
}

/* Restores the ops of @recording from @from, another recording of the same program. */
static inline void
recording_restore(Recording *recording, const Recording *from)
{
    for (uint32_t rank = 0; rank < lh_program_ranks(&recording->program); rank++) {
        restore_array(recording->ops[rank], from->ops[rank]);
        restore_array(recording->parts[rank], from->parts[rank]);
        restore_array(recording->counts[rank], from->counts[rank]);
    }
}

static inline LhOp *
recording_op(const Recording *recording, uint32_t rank, uint32_t id)
{
    g_assert(rank < lh_program_ranks(&recording->program) && recording->ops[rank] != NULL);
    return &g_array_index(recording->ops[rank], LhOp, id);
}

static inline uint32_t
recording_count(const Recording *recording, uint32_t rank)
{
    g_assert(recording->ops[rank] != NULL);
    return recording->ops[rank]->len;
}

/* The array of messages that a rank's exchanges index. */
static inline const LhPart *
recording_parts(const Recording *recording, uint32_t rank)
{
    return (const LhPart *)(const void *)recording->parts[rank]->data;
}

static inline LhPart *
recording_part(const Recording *recording, uint32_t rank, const LhOp *op, uint32_t i)
{
    return &g_array_index(recording->parts[rank], LhPart, op->exchange.parts_first + i);
}

/* Recomputes the wire bytes of a collective whose tensors were changed. */
static inline void
recording_rewire(const Recording *recording, LhOp *op)
{
    op->collective.wire_bytes = 0;
    for (uint32_t i = 0; i < op->collective.tensors_count; i++)
        op->collective.wire_bytes += lh_tensor_wire_bytes(&recording->program, op, i);
}

/* A change of one field of an op or of one of its messages, for tables of mistakes. */
typedef struct {
    uint16_t at, bytes; /* offset and size of the field; no bytes: no change */
    uint16_t message;   /* 1 + index of an exchange's message; 0: the op itself */
    int64_t value;
} FieldChange;

#define OP_FIELD(field, value)                                                                     \
    {                                                                                              \
        offsetof(LhOp, field), sizeof(((LhOp *)NULL)->field), 0, value                             \
    }
#define MESSAGE_FIELD(message, field, value)                                                       \
    {                                                                                              \
        offsetof(LhPart, field), sizeof(((LhPart *)NULL)->field), 1 + (message), value             \
    }

/* The mistakes of one table row. */
#define CHANGES(...)                                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Applies the changes of an array up to the first without bytes. */
static inline void
recording_change(const Recording *recording, uint32_t rank, uint32_t id, const FieldChange *changes,
                 size_t count)
{
    LhOp *op = recording_op(recording, rank, id);

    for (size_t i = 0; i < count && changes[i].bytes > 0; i++) {
        const FieldChange *c = &changes[i];
        const size_t unused = G_BYTE_ORDER == G_BIG_ENDIAN ? sizeof(c->value) - c->bytes : 0;
        void *of = op;

        if (c->message > 0)
            of = recording_part(recording, rank, op, c->message - 1u);
        memcpy((unsigned char *)of + c->at, (const unsigned char *)&c->value + unused, c->bytes);
    }
}
