/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/step_watch.h"

#include "program/cursor.h"
#include "step/call_ops.h"

#include <string.h>

/* Start and end of an op. */
typedef struct {
    LhTime start_ps, end_ps;
} Span;

struct _LhStepWatch {
    const LhProgram *program;
    uint32_t stride; /* every stride-th rank is watched */
    GArray **spans;  /* [watched ranks] of Span, by op */
    uint32_t watched;
    LhTimelineSink inner; /* sink that the hooks had before */
    void *inner_data;
};

static void
note(void *data, const LhTimelineRecord *record)
{
    LhStepWatch *watch = data;

    if (record->rank % watch->stride == 0 && record->rank / watch->stride < watch->watched) {
        GArray *spans = watch->spans[record->rank / watch->stride];

        if (spans->len <= record->op)
            g_array_set_size(spans, MAX(record->op + 1, 2 * spans->len));
        g_array_index(spans, Span, record->op) = (Span){ record->start_ps, record->end_ps };
    }
    if (watch->inner != NULL)
        watch->inner(watch->inner_data, record);
}

LhStepWatch *
lh_step_watch_new(const LhProgram *program, LhHooks *hooks)
{
    LhStepWatch *watch = g_new0(LhStepWatch, 1);
    const uint32_t ranks = lh_program_ranks(program);

    watch->program = program;
    watch->stride = (ranks + LH_STEP_WATCHED_RANKS - 1) / LH_STEP_WATCHED_RANKS;
    watch->watched = (ranks + watch->stride - 1) / watch->stride;
    watch->spans = g_new(GArray *, watch->watched);
    for (uint32_t i = 0; i < watch->watched; i++)
        watch->spans[i] = g_array_new(FALSE, TRUE, sizeof(Span));
    watch->inner = hooks->timeline;
    watch->inner_data = hooks->timeline_data;
    hooks->timeline_stride = hooks->timeline == NULL ? watch->stride : 0;
    hooks->timeline = note;
    hooks->timeline_data = watch;
    return watch;
}

void
lh_step_watch_free(LhStepWatch *watch)
{
    if (watch == NULL)
        return;
    for (uint32_t i = 0; i < watch->watched; i++)
        g_array_unref(watch->spans[i]);
    g_free(watch->spans);
    g_free(watch);
}

/* A rank's ops in program order, and its compute so far. */
typedef struct {
    const GArray *spans;
    GByteArray *dimensions; /* of its ops */
    LhTime busy_until_ps;
    LhTime exposed_ps[LH_DIMENSIONS];
} Rank;

static Span
span_of(const Rank *rank, uint32_t op)
{
    return op < rank->spans->len ? g_array_index(rank->spans, Span, op) : (Span){ 0 };
}

/* Charges idle time before a kernel to the op that it waited for last. */
static void
add_wait(Rank *rank, const LhOp *op, Span span)
{
    uint8_t dimension = LH_DIMENSIONS;
    LhTime latest = rank->busy_until_ps;

    for (uint32_t i = 0; i < op->after_count; i++) {
        const LhTime end = span_of(rank, op->after[i]).end_ps;

        if (end > latest && end <= span.start_ps) {
            latest = end;
            dimension = rank->dimensions->data[op->after[i]];
        }
    }
    if (dimension < LH_DIMENSIONS)
        rank->exposed_ps[dimension] += latest - rank->busy_until_ps;
}

static void
add_op(Rank *rank, const LhProgram *program, const LhOp *op)
{
    const uint8_t dimension = (uint8_t)lh_step_dimension(op);
    const Span span = span_of(rank, op->id);
    const bool computes =
        lh_op_on_stream(op) && program->streams[op->stream].kind == LH_STREAM_COMPUTE;

    g_byte_array_append(rank->dimensions, &dimension, 1);
    if (!computes)
        return;
    /* Communication on a compute stream is always exposed. */
    if (dimension < LH_DIMENSIONS)
        rank->exposed_ps[dimension] +=
            MAX(span.end_ps - MAX(rank->busy_until_ps, span.start_ps), 0);
    else
        add_wait(rank, op, span);
    rank->busy_until_ps = MAX(rank->busy_until_ps, span.end_ps);
}

static void
walk_spans(const LhStepWatch *watch, uint32_t watched, LhOpBuffer *buffer,
           LhTime sum[LH_DIMENSIONS])
{
    Rank rank = { .spans = watch->spans[watched], .dimensions = g_byte_array_new() };
    LhCursor cursor;

    lh_cursor_init(&cursor, watch->program, watched * watch->stride);
    while (lh_cursor_step(&cursor, buffer)) {
        for (uint32_t i = 0; i < buffer->ops_count; i++)
            add_op(&rank, watch->program, &buffer->ops[i]);
    }
    for (int d = 0; d < LH_DIMENSIONS; d++)
        sum[d] += rank.exposed_ps[d];
    g_byte_array_unref(rank.dimensions);
}

void
lh_step_watch_exposed(const LhStepWatch *watch, double exposed_s[LH_DIMENSIONS])
{
    LhTime sum[LH_DIMENSIONS] = { 0 };
    LhOpBuffer buffer = { 0 };

    for (uint32_t i = 0; i < watch->watched; i++)
        walk_spans(watch, i, &buffer, sum);
    lh_op_buffer_clear(&buffer);
    for (int d = 0; d < LH_DIMENSIONS; d++)
        exposed_s[d] = (double)sum[d] / (double)LH_PS_PER_S / watch->watched;
}
