/*
 * What a run does before its threads start and after they have ended: it opens control plane,
 * transport and devices, makes the memory of inputs and outputs, and collects the results.
 */
#include "runtime/execution.h"

#include "base/allocation.h"
#include "base/error.h"

#include <string.h>

/* ---- before ---- */

/* A part of an input goes from the caller to the device. */
static bool
load_part(LhRunner *rank, uint16_t slot, uint32_t part, LhBuffer *buffer, GError **error)
{
    const LhRunParams *params = rank->execution->params;
    const uint64_t bytes = buffer->part_bytes;
    g_autofree unsigned char *data = lh_memory_try(bytes, "a part of an input", error);
    const LhPlaceOfWork *at = &rank->at;

    if (data == NULL)
        return false;
    memset(data, 0, bytes);
    params->load(params->load_data, rank->index, slot, part, data);
    return at->device->load(at->state, lh_buffer_part(buffer, part), data, bytes, at->stream,
                            error) &&
           lh_device_finish(at->device, at->state, at->stream, NULL, NULL, error);
}

/* What is there before the program: slots of inputs and outputs, and those that stay. */
static bool
prepare_slot(LhRunner *rank, uint16_t index, GError **error)
{
    const LhSlot *slot = &rank->execution->program->slots[index];
    const LhRunParams *params = rank->execution->params;
    LhBuffer *buffer;

    if (slot->role == LH_SLOT_TEMP || !lh_slot_is_on(slot, rank->index))
        return true;
    buffer = lh_buffer_new(&rank->at,
                           &(LhBufferParams){ .parts = slot->parts,
                                              .part_bytes = slot->part_bytes,
                                              .packed = params->backend->packed,
                                              .guarded = !params->unguarded },
                           error);
    if (buffer == NULL)
        return false;
    for (uint32_t part = 0; part < slot->parts; part++)
        rank->cells[slot->first_cell + part] = (LhRunCell){ buffer, part };
    if (!lh_buffer_finish(buffer, &rank->at, error))
        return false;
    for (uint32_t part = 0; lh_slot_is_given(slot) && part < slot->parts; part++) {
        if (!load_part(rank, index, part, buffer, error))
            return false;
    }
    return true;
}

/* What a rank's slots take at most at a time. */
static uint64_t
peak_bytes(const LhProgram *program, uint32_t rank)
{
    LhLive live;

    lh_live_walk(&live, program, rank);
    return live.peak_bytes;
}

/* Which GPU of this machine is the rank's, where each has one. */
static uint32_t
ordinal_of(const LhRunner *rank)
{
    const LhControlPlace *place = &rank->execution->place;

    return place->count == 1 ? lh_control_local() : rank->index - place->first;
}

static bool
open_rank(LhRunner *rank, GError **error)
{
    LhExecution *x = rank->execution;
    const LhLinks *links = x->params->backend->links;
    const LhDeviceParams params = {
        .rank = rank->index,
        .ordinal = links == NULL || links->needs_both ? 0 : ordinal_of(rank),
        .alone = x->place.count == 1,
        .kernel_set = x->params->kernel_set,
        .memory_bytes = links == NULL ? 0 : peak_bytes(x->program, rank->index),
        .pin = x->params->pin,
    };

    rank->cells = g_new0(LhRunCell, MAX(lh_program_cells(x->program), 1));
    lh_live_init(&rank->live, x->program, rank->index);
    rank->at.device = x->params->backend->device;
    rank->at.state = rank->at.device->open(&params, error);
    if (rank->at.state == NULL)
        return false;
    rank->at.stream = rank->at.device->stream(rank->at.state, false, error);
    if (rank->at.stream == NULL)
        return false;
    for (uint32_t i = 0; i < x->program->slots_count; i++) {
        if (!prepare_slot(rank, (uint16_t)i, error))
            return false;
    }
    return true;
}

static void
init_runner(LhExecution *x, uint32_t r)
{
    LhRunner *rank = &x->ranks[r];

    rank->execution = x;
    rank->index = x->place.first + r;
    rank->kernels = g_array_new(FALSE, FALSE, sizeof(LhSpan));
    pthread_mutex_init(&rank->lock, NULL);
    pthread_cond_init(&rank->changed, NULL);
    for (uint32_t s = 0; s < x->program->streams_count; s++) {
        rank->streams[s].rank = rank;
        rank->streams[s].index = s;
    }
}

static bool
check_backend(const LhBackend *backend, GError **error)
{
    if (backend->transport == NULL || !backend->transport->host_memory ||
        backend->device->host_memory)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "the transport %s needs memory that the host can access, and the device %s has "
                "none",
                backend->transport->name, backend->device->name);
    return false;
}

#define RESULT_ALIGNMENT 8U /* of the first part of a slot; no element is larger */

/* What a rank's results take that are in the first @slots slots; those that it does not have, too,
 * so that all ranks' results are alike. */
static uint64_t
output_bytes(const LhProgram *program, uint32_t slots)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < slots; i++) {
        if (lh_slot_is_result(&program->slots[i]))
            bytes += program->slots[i].parts * program->slots[i].part_bytes;
        bytes = (bytes + RESULT_ALIGNMENT - 1) / RESULT_ALIGNMENT * RESULT_ALIGNMENT;
    }
    return bytes;
}

/* What a process collects is one array of GLib's, whose length has 32 bits. */
static bool
check_results(const LhExecution *x, GError **error)
{
    const uint64_t bytes = output_bytes(x->program, x->program->slots_count);

    if (bytes <= G_MAXUINT32 / 2 / x->place.count)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "the results of %u ranks, %" G_GUINT64_FORMAT
                " bytes each, are more than the 2 GiB that one process can collect",
                x->place.count, bytes);
    return false;
}

static LhTime
since_start(const void *run)
{
    return lh_execution_now(run);
}

/* Threads have a transport; who submits opens the links itself. */
static bool
open_transport(LhExecution *x, GError **error)
{
    const LhBackend *backend = x->params->backend;
    const LhOpenControl control = { lh_control_resolve(backend->control), x->control, x->place };
    const LhTransportParams params = { .ranks = lh_program_ranks(x->program),
                                       .channels = lh_channels_count(x->channels),
                                       .device = backend->device,
                                       .control = &control,
                                       .replay = x->params->replay,
                                       .now = since_start,
                                       .run = x };

    if (backend->transport == NULL)
        return true;
    x->transport = backend->transport->open(&params, error);
    return x->transport != NULL;
}

bool
lh_execution_open(LhExecution *x, GError **error)
{
    const LhBackend *backend = x->params->backend;
    const uint32_t ranks = lh_program_ranks(x->program);

    x->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->start, NULL);
    if (!check_backend(backend, error))
        return false;
    x->control = backend->control->open(ranks, x->params->deadline_us, &x->place, error);
    if (x->control != NULL && x->params->replay != NULL)
        x->place = (LhControlPlace){ .first = x->params->replay->rank, .count = 1 };
    if (x->control == NULL || !check_results(x, error))
        return false;
    x->channels = lh_channels_new(x->program);
    if (lh_channels_count(x->channels) > LH_CHANNELS_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "the program has %u communicators; at most %u are possible",
                    lh_channels_count(x->channels), LH_CHANNELS_MAX);
        return false;
    }
    if (!open_transport(x, error))
        return false;
    x->ranks = g_new0(LhRunner, x->place.count);
    for (uint32_t r = 0; r < x->place.count; r++)
        init_runner(x, r);
    for (uint32_t r = 0; r < x->place.count; r++) {
        if (!open_rank(&x->ranks[r], error))
            return false;
    }
    return backend->control->barrier(x->control, error);
}

/* ---- after ---- */

/* Ends the streams of a rank, and with them whatever the device still does: in a run that is given
 * up nobody has waited for that. */
static void
end_streams(LhExecution *x, LhRunner *rank)
{
    for (uint32_t i = 0; i < x->program->streams_count; i++) {
        LhRunStream *s = &rank->streams[i];

        if (s->at.stream != NULL)
            s->at.device->end_stream(s->at.state, s->at.stream);
        s->at.stream = NULL;
    }
}

static void
free_items(LhRunner *rank, LhItem *item)
{
    while (item != NULL) {
        LhItem *next = item->next;

        lh_item_free(rank, &rank->at, item);
        item = next;
    }
}

static void
close_stream(LhRunner *rank, LhRunStream *s)
{
    free_items(rank, s->flying);
    free_items(rank, s->first);
    if (s->scratch != NULL)
        s->at.device->release(s->at.state, s->scratch);
}

/* Gives back what the host still holds; the error is set if something wrote beyond it. */
static void
release_cells(LhExecution *x, LhRunner *rank)
{
    const LhProgram *program = x->program;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        for (uint32_t part = 0; part < slot->parts; part++) {
            LhRunCell *cell = &rank->cells[slot->first_cell + part];
            bool whole = true;
            GError *error = NULL;

            lh_buffer_release(cell->buffer, 1, &rank->at, &whole, &error);
            if (!whole && error == NULL)
                error = g_error_new(LH_ERROR, LH_ERROR_RUNTIME,
                                    "rank %u: something wrote beyond the end of slot %s",
                                    rank->index, slot->name);
            if (x->error == NULL)
                x->error = error;
            else
                g_clear_error(&error);
        }
    }
}

static void
close_rank(LhExecution *x, LhRunner *rank)
{
    for (uint32_t s = 0; s < x->program->streams_count; s++)
        close_stream(rank, &rank->streams[s]);
    while (!g_queue_is_empty(&rank->endings)) {
        LhEnding *ending = g_queue_pop_head(&rank->endings);

        lh_buffer_end_free(ending->end, &rank->at);
        g_free(ending);
    }
    if (rank->cells != NULL)
        release_cells(x, rank);
    if (rank->at.stream != NULL)
        rank->at.device->end_stream(rank->at.state, rank->at.stream);
    if (rank->at.state != NULL)
        rank->at.device->close(rank->at.state);
}

/* Frees what reports of a rank need; called when no rank can report anything any more. */
static void
clear_runner(LhRunner *rank)
{
    g_free(rank->cells);
    g_free(rank->done);
    g_array_unref(rank->kernels);
    pthread_mutex_destroy(&rank->lock);
    pthread_cond_destroy(&rank->changed);
}

void
lh_execution_close(LhExecution *x)
{
    const LhBackend *backend = x->params->backend;

    /* A rank may still read what another one holds: nothing is given back before all are still. */
    for (uint32_t r = 0; x->ranks != NULL && r < x->place.count; r++)
        end_streams(x, &x->ranks[r]);
    for (uint32_t r = 0; x->ranks != NULL && r < x->place.count; r++)
        close_rank(x, &x->ranks[r]);
    for (uint32_t r = 0; x->ranks != NULL && r < x->place.count; r++)
        clear_runner(&x->ranks[r]);
    g_free(x->ranks);
    g_array_unref(x->records);
    pthread_cond_destroy(&x->start);
    pthread_mutex_destroy(&x->lock);
    if (x->transport != NULL)
        backend->transport->close(x->transport);
    lh_channels_free(x->channels);
    if (x->control != NULL)
        backend->control->close(x->control);
}

/* ---- results ---- */

/* A part of an output goes from the device to the end of @bytes. */
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
        g_byte_array_set_size(bytes, first + (guint)output_bytes(x->program, i + 1));
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

/* How long some kernel was running: those of several streams may run at once. */
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

/* Counters, outputs and records of this process's ranks: fixed sizes first. */
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
    result->output_bytes = output_bytes(x->program, x->program->slots_count);
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

/* What pack() has of a process before its records, with their number. */
static uint64_t
bytes_before_records(const LhExecution *x)
{
    const uint64_t outputs = output_bytes(x->program, x->program->slots_count);

    return x->place.count * (sizeof(LhRunRank) + outputs) + sizeof(uint64_t);
}

/* Whether the bytes are what pack() has of all processes. */
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

/* The inverse of pack(), for the processes of ranks [first, end) one after another; all have the
 * same number of ranks. */
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
    /* How many records another process has is not known here. */
    const gsize limit = x->params->timeline != NULL ? G_MAXUINT : bytes_before_records(x);

    /* Results go over the same network as the messages of those that are still at it. */
    if (!pack(x, bytes, error) || !control->barrier(x->control, error) ||
        !control->gather(x->control, bytes, limit, all, error))
        return NULL;
    result->whole = all->len > 0;
    if (result->whole && x->params->replay == NULL && !is_packed(x, all, result->ranks_count)) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "what other processes tell of their results cannot be read");
        return NULL;
    }
    if (result->whole && x->params->replay == NULL)
        unpack(x, all, 0, result->ranks_count, result);
    else
        unpack(x, bytes, x->place.first, x->place.first + x->place.count, result);
    return g_steal_pointer(&result);
}

void
lh_run_result_free(LhRunResult *result)
{
    if (result == NULL)
        return;
    for (uint32_t r = 0; r < result->ranks_count; r++)
        g_free(result->outputs[r]);
    g_free(result->outputs);
    g_free(result->ranks);
    g_free(result);
}

const unsigned char *
lh_run_output(const LhRunResult *result, const LhProgram *program, uint32_t rank, uint16_t slot,
              uint32_t part)
{
    return result->outputs[rank] + output_bytes(program, slot) +
           part * program->slots[slot].part_bytes;
}
