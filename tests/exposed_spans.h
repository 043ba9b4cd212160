/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exposed communication by its definition, from the start and end of every op of a run, to compare
 * with what the simulator measures on the way.
 */
#pragma once

#include "program/cursor.h"
#include "run_tests.h"
#include "sim/sim.h"
#include "step/layer_info.h"

typedef struct {
    LhTime start_ps, end_ps;
} ExposedSpan;

/* Spans of the ops of each rank. */
typedef struct {
    GArray **of_rank; /* of ExposedSpan, by op */
    uint32_t ranks;
} ExposedSpans;

static inline ExposedSpans
exposed_spans_new(uint32_t ranks)
{
    ExposedSpans spans = { .of_rank = g_new(GArray *, ranks), .ranks = ranks };

    for (uint32_t r = 0; r < ranks; r++)
        spans.of_rank[r] = g_array_new(FALSE, TRUE, sizeof(ExposedSpan));
    return spans;
}

static inline void
exposed_spans_clear(ExposedSpans *spans)
{
    for (uint32_t r = 0; r < spans->ranks; r++)
        g_array_unref(spans->of_rank[r]);
    g_free(spans->of_rank);
}

/* An LhTimelineSink. */
static inline void
exposed_spans_note(void *data, const LhTimelineRecord *record)
{
    const ExposedSpans *to = data;
    GArray *spans = to->of_rank[record->rank];

    if (spans->len <= record->op)
        g_array_set_size(spans, MAX(record->op + 1, 2 * spans->len));
    g_array_index(spans, ExposedSpan, record->op) =
        (ExposedSpan){ record->start_ps, record->end_ps };
}

static inline ExposedSpan
exposed_span(const GArray *spans, uint32_t op)
{
    return op < spans->len ? g_array_index(spans, ExposedSpan, op) : (ExposedSpan){ 0 };
}

/* Idle time before a kernel belongs to the op that it waited for last. */
static inline void
exposed_wait(const GArray *spans, const GByteArray *dimensions, const LhOp *op,
             LhTime busy_until_ps, LhTime sum_ps[LH_EXPOSED_DIMENSIONS])
{
    const ExposedSpan span = exposed_span(spans, op->id);
    LhTime latest_ps = busy_until_ps;
    uint8_t dimension = LH_DIMENSIONS;

    for (uint32_t i = 0; i < op->after_count; i++) {
        const LhTime end_ps = exposed_span(spans, op->after[i]).end_ps;

        if (end_ps > latest_ps && end_ps <= span.start_ps) {
            latest_ps = end_ps;
            dimension = dimensions->data[op->after[i]];
        }
    }
    if (dimension < LH_DIMENSIONS)
        sum_ps[dimension] += latest_ps - busy_until_ps;
}

/* Adds the exposed communication of rank @r, read in program order. */
static inline void
exposed_spans_add(const ExposedSpans *all, const LhProgram *program, uint32_t r,
                  LhTime sum_ps[LH_EXPOSED_DIMENSIONS])
{
    g_autoptr(GByteArray) dimensions = g_byte_array_new();
    const GArray *spans = all->of_rank[r];
    LhTime busy_until_ps = 0;
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    lh_cursor_init(&cursor, program, r);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];
            const uint8_t dimension = (uint8_t)lh_step_dimension(op);
            const ExposedSpan span = exposed_span(spans, op->id);

            g_byte_array_append(dimensions, &dimension, 1);
            if (!lh_op_on_stream(op) || program->streams[op->stream].kind != LH_STREAM_COMPUTE)
                continue;
            if (dimension < LH_DIMENSIONS)
                sum_ps[dimension] += MAX(span.end_ps - MAX(busy_until_ps, span.start_ps), 0);
            else
                exposed_wait(spans, dimensions, op, busy_until_ps, sum_ps);
            busy_until_ps = MAX(busy_until_ps, span.end_ps);
        }
    }
    lh_op_buffer_clear(&buffer);
}
