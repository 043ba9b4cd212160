/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/export_walk.h"

#include "scenario/setup_simulate.h"

#include <string.h>

#define NO_STREAM UINT8_MAX

void
lh_export_walk_init(LhExportWalk *walk, const LhSetup *setup, const LhProgram *program)
{
    *walk = (LhExportWalk){ .setup = setup,
                            .program = program,
                            .params = lh_setup_sim_params(setup, program),
                            .streams = g_byte_array_new() };
    lh_sim_begin_cost(&walk->cost, &walk->params);
}

void
lh_export_walk_clear(LhExportWalk *walk)
{
    if (walk->streams == NULL)
        return;
    lh_cost_clear(&walk->cost);
    lh_op_buffer_clear(&walk->buffer);
    g_byte_array_unref(walk->streams);
}

static void
begin_rank(LhExportWalk *walk, uint32_t rank)
{
    walk->rank = rank;
    walk->slowdown = lh_sim_slowdown(&walk->params, rank);
    walk->cost.calls = (LhCallHistory){ 0 };
    walk->gated = 0;
    g_byte_array_set_size(walk->streams, 0);
    for (uint32_t s = 0; s < LH_STREAMS_MAX; s++)
        walk->last[s] = walk->gates[s] = LH_OP_NONE;
}

/* Adds a wait; later ops of a stream imply earlier ones. */
static void
add_wait(uint32_t latest[LH_STREAMS_MAX], uint8_t stream, uint32_t op)
{
    if (op != LH_OP_NONE && (latest[stream] == LH_OP_NONE || latest[stream] < op))
        latest[stream] = op;
}

static void
find_waits(LhExportWalk *walk, const LhOp *op)
{
    const bool gated = (walk->gated & UINT32_C(1) << op->stream) != 0;
    uint32_t latest[LH_STREAMS_MAX];

    for (uint8_t s = 0; s < LH_STREAMS_MAX; s++) {
        latest[s] = LH_OP_NONE;
        if (gated)
            add_wait(latest, s, walk->gates[s]);
    }
    add_wait(latest, op->stream, walk->last[op->stream]);
    for (uint32_t i = 0; i < op->after_count; i++) {
        const uint8_t stream = walk->streams->data[op->after[i]];

        if (stream != NO_STREAM)
            add_wait(latest, stream, op->after[i]);
    }
    walk->gated &= ~(UINT32_C(1) << op->stream);
    walk->waits_count = 0;
    for (uint32_t s = 0; s < LH_STREAMS_MAX; s++)
        if (latest[s] != LH_OP_NONE)
            walk->waits[walk->waits_count++] = latest[s];
}

static void
pass_sync(LhExportWalk *walk)
{
    memcpy(walk->gates, walk->last, sizeof(walk->gates));
    walk->gated = UINT32_MAX;
}

bool
lh_export_walk_rank(LhExportWalk *walk, uint32_t rank,
                    bool (*tell)(void *data, const LhOp *op, GError **error), void *data,
                    GError **error)
{
    LhCursor cursor;

    begin_rank(walk, rank);
    lh_cursor_init(&cursor, walk->program, rank);
    while (lh_cursor_step(&cursor, &walk->buffer)) {
        for (uint32_t i = 0; i < walk->buffer.ops_count; i++) {
            const LhOp *op = &walk->buffer.ops[i];
            const uint8_t stream = lh_op_on_stream(op) ? op->stream : NO_STREAM;

            if (stream != NO_STREAM)
                find_waits(walk, op);
            g_byte_array_append(walk->streams, &stream, 1);
            if (op->kind == LH_OP_SYNC)
                pass_sync(walk);
            if (stream == NO_STREAM)
                continue;
            if (!tell(data, op, error))
                return false;
            walk->last[stream] = op->id;
        }
    }
    return true;
}

LhTime
lh_export_kernel_ps(LhExportWalk *walk, const LhOp *op)
{
    const double ps = (double)lh_cost_compute(&walk->cost, walk->program, op, NULL);

    return lh_time_from_ps(ps * walk->slowdown *
                           lh_sim_variation(&walk->params, walk->rank, op->id));
}
