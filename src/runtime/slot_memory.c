/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/slot_memory.h"

#define ALIGNMENT 64
#define PACKED_ALIGNMENT 16 /* widest access of kernels, bytes */
#define CANARY 0xC5
#define POISON 0xFF
#define CANARY_BYTES_MAX (ALIGNMENT + LH_CANARY_BYTES)

static uint64_t
buffer_bytes(const LhBuffer *b)
{
    return b->canary_bytes + b->parts * b->stride_bytes;
}

static bool
fill(const LhBuffer *b, const LhPlaceOfWork *at, GError **error)
{
    const LhRunDevice *device = at->device;

    if (b->canary_bytes == 0)
        return device->fill(at->state, b->memory, POISON, buffer_bytes(b), at->stream, error);
    if (!device->fill(at->state, b->memory, CANARY, buffer_bytes(b), at->stream, error))
        return false;
    for (uint32_t part = 0; part < b->parts; part++) {
        if (!device->fill(at->state, lh_buffer_part(b, part), POISON, b->part_bytes, at->stream,
                          error))
            return false;
    }
    return true;
}

LhBuffer *
lh_buffer_new(const LhPlaceOfWork *at, const LhBufferParams *params, GError **error)
{
    g_autofree LhBuffer *b = g_new0(LhBuffer, 1);
    const uint64_t align = params->packed ? PACKED_ALIGNMENT : ALIGNMENT;

    b->holds = (gint)params->parts;
    b->parts = params->parts;
    b->part_bytes = params->part_bytes;
    b->canary_bytes = params->packed || !params->guarded ? 0 : LH_CANARY_BYTES;
    b->stride_bytes = (b->part_bytes + align - 1) / align * align + b->canary_bytes;
    b->memory = at->device->alloc(at->state, buffer_bytes(b), error);
    if (b->memory == NULL)
        return NULL;
    if (!params->guarded)
        return g_steal_pointer(&b);
    if (fill(b, at, error)) {
        b->ready = at->device->mark(at->state, at->stream, error);
        if (b->ready != NULL)
            return g_steal_pointer(&b);
    }
    at->device->release(at->state, b->memory);
    return NULL;
}

static void
clear_ready(LhBuffer *b, const LhPlaceOfWork *at)
{
    if (b->ready != NULL)
        at->device->unmark(at->state, b->ready);
    b->ready = NULL;
}

bool
lh_buffer_finish(LhBuffer *b, const LhPlaceOfWork *at, GError **error)
{
    const bool ok =
        b->ready == NULL || lh_device_pass(at->device, at->state, b->ready, NULL, NULL, error);

    clear_ready(b, at);
    return ok;
}

bool
lh_buffer_wait(LhBuffer *b, const LhPlaceOfWork *at, GError **error)
{
    int passed;

    if (b->ready == NULL)
        return true;
    passed = at->device->passed(at->state, b->ready, error);
    if (passed == 1)
        clear_ready(b, at);
    return passed == 1 || (passed == 0 && at->device->wait(at->state, at->stream, b->ready, error));
}

LhBuffer *
lh_buffer_hold(LhBuffer *b)
{
    g_atomic_int_inc(&b->holds);
    return b;
}

/* Address and size of the canary after @part, or before all parts if @part is negative. */
static const unsigned char *
canary(const LhBuffer *b, int64_t part, uint64_t *bytes)
{
    *bytes = part < 0 ? b->canary_bytes : b->stride_bytes - b->part_bytes;
    return part < 0 ? b->memory : lh_buffer_part(b, (uint32_t)part) + b->part_bytes;
}

static bool
store_canaries(const LhBufferEnd *e, const LhPlaceOfWork *at, GError **error)
{
    const LhBuffer *b = e->buffer;

    for (int64_t part = -1; b->canary_bytes > 0 && part < b->parts; part++) {
        uint64_t bytes;
        const unsigned char *from = canary(b, part, &bytes);

        if (!at->device->store(at->state, e->found + (part + 1) * CANARY_BYTES_MAX, from, bytes,
                               at->stream, error))
            return false;
    }
    return true;
}

static bool
is_intact(const LhBufferEnd *e)
{
    const LhBuffer *b = e->buffer;

    for (int64_t part = -1; b->canary_bytes > 0 && part < b->parts; part++) {
        const unsigned char *found = e->found + (part + 1) * CANARY_BYTES_MAX;
        uint64_t bytes;

        canary(b, part, &bytes);
        for (uint64_t i = 0; i < bytes; i++) {
            if (found[i] != CANARY)
                return false;
        }
    }
    return true;
}

/* The device may still be writing e->found. */
void
lh_buffer_end_free(LhBufferEnd *e, const LhPlaceOfWork *at)
{
    if (e->mark != NULL)
        lh_device_pass(at->device, at->state, e->mark, NULL, NULL, NULL);
    clear_ready(e->buffer, at);
    at->device->release(at->state, e->buffer->memory);
    if (e->mark != NULL)
        at->device->unmark(at->state, e->mark);
    g_free(e->found);
    g_free(e->buffer);
    g_free(e);
}

bool
lh_buffer_give_up(LhBuffer *b, gint holds, const LhPlaceOfWork *at, LhBufferEnd **end,
                  GError **error)
{
    LhBufferEnd *e;

    *end = NULL;
    if (b == NULL || g_atomic_int_add(&b->holds, -holds) != holds)
        return true;
    e = g_new0(LhBufferEnd, 1);
    e->buffer = b;
    e->found = g_malloc0((b->parts + 1) * (gsize)CANARY_BYTES_MAX);
    if (store_canaries(e, at, error)) {
        e->mark = at->device->mark(at->state, at->stream, error);
        if (e->mark != NULL) {
            *end = e;
            return true;
        }
    }
    lh_buffer_end_free(e, at);
    return false;
}

int
lh_buffer_end_look(LhBufferEnd *e, const LhPlaceOfWork *at, bool *whole, GError **error)
{
    const int passed = at->device->passed(at->state, e->mark, error);

    if (passed == 1)
        *whole = is_intact(e);
    if (passed != 0)
        lh_buffer_end_free(e, at);
    return passed;
}

bool
lh_buffer_release(LhBuffer *b, gint holds, const LhPlaceOfWork *at, bool *whole, GError **error)
{
    LhBufferEnd *end;
    bool ok;

    if (!lh_buffer_give_up(b, holds, at, &end, error))
        return false;
    if (end == NULL)
        return true;
    ok = lh_device_pass(at->device, at->state, end->mark, NULL, NULL, error);
    *whole = *whole && (!ok || is_intact(end));
    lh_buffer_end_free(end, at);
    return ok;
}
