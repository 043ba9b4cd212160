/* Slot memory with canaries; see the header. */
#include "runtime/buffer.h"

#include <string.h>

#define ALIGNMENT 64
#define CANARY_BYTES 64
#define CANARY 0xC5
#define POISON 0xFF

LhBuffer *
lh_buffer_new(const LhSlot *slot)
{
    LhBuffer *b = g_new0(LhBuffer, 1);
    const uint64_t body = (slot->part_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const uint64_t bytes = CANARY_BYTES + slot->parts * (body + CANARY_BYTES);

    b->holds = 1;
    b->parts = slot->parts;
    b->part_bytes = slot->part_bytes;
    b->stride_bytes = body + CANARY_BYTES;
    b->memory = g_aligned_alloc(1, bytes, ALIGNMENT);
    memset(b->memory, CANARY, bytes);
    for (uint32_t part = 0; part < b->parts; part++)
        memset(lh_buffer_part(b, part), POISON, b->part_bytes);
    return b;
}

LhBuffer *
lh_buffer_hold(LhBuffer *b)
{
    g_atomic_int_inc(&b->holds);
    return b;
}

bool
lh_buffer_release(LhBuffer *b)
{
    bool whole;

    if (b == NULL || !g_atomic_int_dec_and_test(&b->holds))
        return true;
    whole = lh_buffer_is_whole(b);
    g_aligned_free(b->memory);
    g_free(b);
    return whole;
}

unsigned char *
lh_buffer_part(const LhBuffer *b, uint32_t part)
{
    return b->memory + CANARY_BYTES + part * b->stride_bytes;
}

static bool
is_canary(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++) {
        if (*from != CANARY)
            return false;
    }
    return true;
}

bool
lh_buffer_is_whole(const LhBuffer *b)
{
    if (!is_canary(b->memory, b->memory + CANARY_BYTES))
        return false;
    for (uint32_t part = 0; part < b->parts; part++) {
        const unsigned char *start = lh_buffer_part(b, part);

        if (!is_canary(start + b->part_bytes,
                       b->memory + CANARY_BYTES + (part + 1) * b->stride_bytes))
            return false;
    }
    return true;
}
