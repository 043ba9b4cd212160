/*
 * Programs held in memory op by op, so that a test can write one by hand or damage a generated one.
 * A recording keeps the slots, parameters and closed forms of the program it was made from.
 */
#pragma once

#include "sched/schedule.h"

typedef struct {
    LhProgram program; /* what the verifier sees; borrows slots of the original */
    LhSchedule schedule;
    GArray **ops;   /* [ranks] of LhOp; parts_first indexes parts[rank] */
    GArray **parts; /* [ranks] of LhPart */
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
    const Recording *recording = (const Recording *)e->program->user;
    const uint32_t moved = e->cursor->group_first; /* the cursor moves peers by it */
    const GArray *ops = recording->ops[e->cursor->rank];
    const GArray *parts = recording->parts[e->cursor->rank];

    (void)step;
    for (guint i = 0; i < ops->len; i++) {
        const LhOp *op = &g_array_index(ops, LhOp, i);
        uint32_t first = 0;

        if (op->kind == LH_OP_EXCHANGE) {
            lh_emit_exchange(e, op->stream);
            first = lh_emit_last(e)->exchange.parts_first;
            for (uint32_t k = 0; k < op->exchange.parts_count; k++) {
                const LhPart *part = &g_array_index(parts, LhPart, op->exchange.parts_first + k);

                lh_emit_part(e, part->send, part->peer, part->tag, part->wire_bytes);
                e->buffer->parts[e->buffer->parts_count - 1] = *part;
                e->buffer->parts[e->buffer->parts_count - 1].peer -= moved;
            }
        } else {
            lh_emit_sync(e);
        }
        *lh_emit_last(e) = *op;
        if (op->kind == LH_OP_EXCHANGE)
            lh_emit_last(e)->exchange.parts_first = first;
        if (op->kind == LH_OP_COLLECTIVE)
            lh_emit_last(e)->collective.group.base -= moved;
    }
}

/* The original must live as long. */
static Recording *
recording_new(const LhProgram *original)
{
    const uint32_t ranks = lh_program_ranks(original);
    Recording *recording = g_new0(Recording, 1);
    LhOpBuffer buffer = { 0 };

    recording->program = *original;
    if (original->schedule != NULL)
        recording->schedule = *original->schedule;
    recording->schedule.steps = recording_steps;
    recording->schedule.emit = recording_emit;
    recording->program.schedule = &recording->schedule;
    recording->program.single = false;
    recording->program.user = recording;
    recording->ops = g_new0(GArray *, ranks);
    recording->parts = g_new0(GArray *, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        GArray *ops = g_array_new(FALSE, FALSE, sizeof(LhOp));
        GArray *parts = g_array_new(FALSE, FALSE, sizeof(LhPart));
        LhCursor cursor;

        recording->ops[rank] = ops;
        recording->parts[rank] = parts;
        lh_cursor_init(&cursor, original, rank);
        while (lh_cursor_step(&cursor, &buffer)) {
            for (uint32_t i = 0; i < buffer.ops_count; i++) {
                LhOp op = buffer.ops[i];

                if (op.kind == LH_OP_EXCHANGE)
                    op.exchange.parts_first += parts->len;
                g_array_append_val(ops, op);
            }
            if (buffer.parts_count > 0)
                g_array_append_vals(parts, buffer.parts, buffer.parts_count);
        }
    }
    lh_op_buffer_clear(&buffer);
    return recording;
}

static void
recording_free(Recording *recording)
{
    for (uint32_t rank = 0; rank < lh_program_ranks(&recording->program); rank++) {
        g_array_unref(recording->ops[rank]);
        g_array_unref(recording->parts[rank]);
    }
    g_free(recording->ops);
    g_free(recording->parts);
    g_free(recording);
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

static inline LhPart *
recording_part(const Recording *recording, uint32_t rank, const LhOp *op, uint32_t i)
{
    return &g_array_index(recording->parts[rank], LhPart, op->exchange.parts_first + i);
}
