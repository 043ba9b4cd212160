/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the results of a run in the first process: outputs, counters, and the timeline. */
#include "runtime/runtime_private.h"

#include "base/error.h"
#include "runtime/run_result.h"

#include <string.h>

/* Appends a part of an output from the device to @bytes. */
static bool
append_part(const LhRunner *rank, const LhRunCell *cell, GByteArray *bytes, GError **error)
{
    const LhPlaceOfWork *at = &rank->at;
    const guint before = bytes->len;

    g_byte_array_set_size(bytes, before + (guint)cell->buffer->part_bytes);
    return at->device->store(at->state, bytes->data + before,
                             lh_buffer_part(cell->buffer, cell->part), cell->buffer->part_bytes,
                             at->stream, error) &&
           lh_device_finish(at->device, at->state, at->stream, NULL, NULL, error);
}

static bool
append_outputs(const LhExecution *x, const LhRunner *rank, GByteArray *bytes, GError **error)
{
    const guint first = bytes->len;

    for (uint32_t i = 0; i < x->program->slots_count; i++) {
        const LhSlot *slot = &x->program->slots[i];
        const bool has = lh_slot_is_result(slot) && lh_slot_is_on(slot, rank->index);
        guint before;

        for (uint32_t part = 0; has && part < slot->parts; part++) {
            if (!append_part(rank, &rank->cells[slot->first_cell + part], bytes, error))
                return false;
        }
        before = bytes->len;
        g_byte_array_set_size(bytes, first + (guint)lh_run_output_bytes(x->program, i + 1));
        memset(bytes->data + before, 0, bytes->len - before);
    }
    return true;
}

static int
by_start(const void *a, const void *b)
{
    const LhSpan *x = a, *y = b;

    return x->start_ps < y->start_ps ? -1 : x->start_ps > y->start_ps;
}

/* Time with at least one kernel running; kernels of several streams may overlap. */
static LhTime
busy_time(GArray *kernels)
{
    LhTime busy_ps = 0, until_ps = 0;

    g_array_sort(kernels, by_start);
    for (guint i = 0; i < kernels->len; i++) {
        const LhSpan *k = &g_array_index(kernels, LhSpan, i);

        busy_ps += MAX(k->end_ps - MAX(k->start_ps, until_ps), 0);
        until_ps = MAX(until_ps, k->end_ps);
    }
    return busy_ps;
}

/* Packs counters, outputs and records of this process's ranks: fixed sizes first. */
static bool
pack(LhExecution *x, GByteArray *bytes, GError **error)
{
    const uint64_t records = x->records->len;

    for (uint32_t r = 0; r < x->place.count; r++) {
        LhRunner *rank = &x->ranks[r];

        rank->counted.peak_bytes = rank->live.peak_bytes;
        rank->counted.busy_ps = busy_time(rank->kernels);
        g_byte_array_append(bytes, (const guint8 *)&rank->counted, sizeof(LhRunRank));
        if (!append_outputs(x, rank, bytes, error))
            return false;
    }
    g_byte_array_append(bytes, (const guint8 *)&records, sizeof(records));
    g_byte_array_append(bytes, (const guint8 *)x->records->data,
                        (guint)(records * sizeof(LhTimelineRecord)));
    return true;
}

static LhRunResult *
result_new(const LhExecution *x)
{
    LhRunResult *result = g_new0(LhRunResult, 1);

    result->ranks_count = lh_program_ranks(x->program);
    result->ranks = g_new0(LhRunRank, result->ranks_count);
    result->outputs = g_new0(unsigned char *, result->ranks_count);
    result->output_bytes = lh_run_output_bytes(x->program, x->program->slots_count);
    result->collectives = x->params->collectives;
    return result;
}

static void
report_records(const LhRunParams *params, const guint8 *data, uint64_t count)
{
    for (uint64_t i = 0; params->timeline != NULL && i < count; i++) {
        LhTimelineRecord r;

        memcpy(&r, data + i * sizeof(r), sizeof(r));
        params->timeline(params->timeline_data, &r);
    }
}

/* Bytes that pack() writes for a process before its records, including their number. */
static uint64_t
bytes_before_records(const LhExecution *x)
{
    const uint64_t outputs = lh_run_output_bytes(x->program, x->program->slots_count);

    return x->place.count * (sizeof(LhRunRank) + outputs) + sizeof(uint64_t);
}

/* Whether the bytes are pack()'s output of all processes. */
static bool
is_packed(const LhExecution *x, const GByteArray *bytes, uint32_t ranks)
{
    const uint64_t before = bytes_before_records(x);
    uint64_t at = 0, records;

    for (uint32_t r = 0; r < ranks; r += x->place.count) {
        if (bytes->len - at < before)
            return false;
        at += before;
        memcpy(&records, bytes->data + at - sizeof(records), sizeof(records));
        if (records > (bytes->len - at) / sizeof(LhTimelineRecord))
            return false;
        at += records * sizeof(LhTimelineRecord);
    }
    return at == bytes->len;
}

/* The inverse of pack() for the concatenated processes of ranks [first, end); all have the same
 * number of ranks. */
static void
unpack(const LhExecution *x, const GByteArray *bytes, uint32_t first, uint32_t end,
       LhRunResult *result)
{
    const guint8 *at = bytes->data;

    for (uint32_t r = first; r < end; r++) {
        uint64_t records;

        memcpy(&result->ranks[r], at, sizeof(LhRunRank));
        at += sizeof(LhRunRank);
        result->outputs[r] = g_memdup2(at, result->output_bytes);
        at += result->output_bytes;
        result->makespan_ps = MAX(result->makespan_ps, result->ranks[r].finish_ps);
        if ((r + 1) % x->place.count != 0)
            continue;
        memcpy(&records, at, sizeof(records));
        at += sizeof(records);
        if (result->whole)
            report_records(x->params, at, records);
        at += records * sizeof(LhTimelineRecord);
    }
    g_assert(at == bytes->data + bytes->len);
}

LhRunResult *
lh_execution_collect(LhExecution *x, GError **error)
{
    const LhControl *control = x->params->backend->control;
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autoptr(LhRunResult) result = result_new(x);
    /* The number of records of other processes is unknown here. */
    const gsize limit = x->params->timeline != NULL ? G_MAXUINT : bytes_before_records(x);

    /* Results share the network with the messages of ranks still running. */
    if (!pack(x, bytes, error) || !control->barrier(x->control, error) ||
        !control->gather(x->control, bytes, limit, all, error))
        return NULL;
    result->whole = all->len > 0;
    if (result->whole && x->params->replay == NULL && !is_packed(x, all, result->ranks_count)) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "the results of other processes cannot be decoded");
        return NULL;
    }
    if (result->whole && x->params->replay == NULL)
        unpack(x, all, 0, result->ranks_count, result);
    else
        unpack(x, bytes, x->place.first, x->place.first + x->place.count, result);
    return g_steal_pointer(&result);
}
