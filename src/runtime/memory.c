/* See the header. */
#include "runtime/memory.h"

#include <string.h>

#define ALIGNMENT 64
#define CANARY 0xC5
#define POISON 0xFF

static bool
finish(const LhPlaceOfWork *at, GError **error)
{
    return lh_device_finish(at->device, at->state, at->stream, NULL, NULL, error);
}

static bool
prepare(LhBuffer *b, const LhPlaceOfWork *at, uint64_t bytes, GError **error)
{
    if (!at->device->fill(at->state, b->memory, CANARY, bytes, at->stream, error))
        return false;
    for (uint32_t part = 0; part < b->parts; part++) {
        if (!at->device->fill(at->state, lh_buffer_part(b, part), POISON, b->part_bytes, at->stream,
                              error))
            return false;
    }
    return finish(at, error);
}

LhBuffer *
lh_buffer_new(const LhPlaceOfWork *at, uint32_t parts, uint64_t part_bytes, GError **error)
{
    g_autofree LhBuffer *b = g_new0(LhBuffer, 1);
    const uint64_t body = (part_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const uint64_t bytes = LH_CANARY_BYTES + parts * (body + LH_CANARY_BYTES);

    b->holds = (gint)parts;
    b->parts = parts;
    b->part_bytes = part_bytes;
    b->stride_bytes = body + LH_CANARY_BYTES;
    b->memory = at->device->alloc(at->state, bytes, error);
    if (b->memory == NULL)
        return NULL;
    if (prepare(b, at, bytes, error))
        return g_steal_pointer(&b);
    at->device->release(at->state, b->memory);
    return NULL;
}

LhBuffer *
lh_buffer_hold(LhBuffer *b)
{
    g_atomic_int_inc(&b->holds);
    return b;
}

/* Sets @whole to false if @bytes from @memory on are not what they were filled with. */
static bool
check_canary(const LhPlaceOfWork *at, const unsigned char *memory, uint64_t bytes, bool *whole,
             GError **error)
{
    unsigned char found[ALIGNMENT + LH_CANARY_BYTES];

    if (!at->device->store(at->state, found, memory, bytes, at->stream, error) ||
        !finish(at, error))
        return false;
    for (uint64_t i = 0; i < bytes; i++)
        *whole = *whole && found[i] == CANARY;
    return true;
}

static bool
check_canaries(const LhBuffer *b, const LhPlaceOfWork *at, bool *whole, GError **error)
{
    bool ok = check_canary(at, b->memory, LH_CANARY_BYTES, whole, error);

    for (uint32_t part = 0; ok && part < b->parts; part++)
        ok = check_canary(at, lh_buffer_part(b, part) + b->part_bytes,
                          b->stride_bytes - b->part_bytes, whole, error);
    return ok;
}

bool
lh_buffer_release(LhBuffer *b, gint holds, const LhPlaceOfWork *at, bool *whole, GError **error)
{
    bool ok;

    if (b == NULL || g_atomic_int_add(&b->holds, -holds) != holds)
        return true;
    ok = check_canaries(b, at, whole, error);
    at->device->release(at->state, b->memory);
    g_free(b);
    return ok;
}
