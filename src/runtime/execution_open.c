/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setup of a run before its threads start, and teardown after they have ended: control plane,
 * transport, devices, and the memory of inputs and outputs.
 */
#include "runtime/runtime_private.h"

#include "base/allocation.h"
#include "base/error.h"
#include "runtime/bind.h"
#include "runtime/run_result.h"

/* ---- setup ---- */

/* Loads a part of an input from the caller to the device. */
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

/* Allocates a slot that exists before the program: of inputs and outputs, and persistent slots. */
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

/* Peak memory of a rank's slots. */
static uint64_t
peak_bytes(const LhProgram *program, uint32_t rank)
{
    LhLive live;

    lh_live_walk(&live, program, rank);
    return live.peak_bytes;
}

/* The rank's GPU on this machine, where each rank has one. */
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

/* Checks that the results fit one GLib array, whose length has 32 bits. */
static bool
check_results(const LhExecution *x, GError **error)
{
    const uint64_t bytes = lh_run_output_bytes(x->program, x->program->slots_count);

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

/* The engine of threads uses a transport; the submission engine opens the links itself. */
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

/* Slots in host memory need a device whose memory is the host's. */
static bool
check_memories(const LhExecution *x, GError **error)
{
    const LhBackend *backend = x->params->backend;

    for (uint32_t i = 0; i < x->program->slots_count && !backend->device->host_memory; i++) {
        if (!x->program->slots[i].on_host)
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "slot %s is in host memory, which backend %s does not support; programs with "
                    "offload run on backends cpu, mpi and tcp",
                    x->program->slots[i].name, backend->name);
        return false;
    }
    return true;
}

bool
lh_execution_open(LhExecution *x, GError **error)
{
    const LhBackend *backend = x->params->backend;
    const uint32_t ranks = lh_program_ranks(x->program);

    x->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->start, NULL);
    if (!check_backend(backend, error) || !check_memories(x, error))
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

/* ---- teardown ---- */

/* Ends the streams of a rank, including work still in progress: an aborted run has not waited for
 * it. */
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

/* Releases the buffers that the host still holds; sets the error if a canary was overwritten. */
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

/* Frees what reports of a rank need; called when no rank can report any more. */
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

    /* A rank may still read another's memory: nothing is released before all streams have ended. */
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
