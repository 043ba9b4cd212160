/*
 * The memory of a slot: its parts one after another, each between canaries. Buffers are counted, as
 * a stream-ordered allocator does it: the host's `free` gives up its hold at once, the memory goes
 * when the last op that was issued before has run.
 */
#pragma once

#include "sched/ir.h"

typedef struct {
    gint holds;
    uint32_t parts;
    uint64_t part_bytes, stride_bytes;
    unsigned char *memory;
} LhBuffer;

/* Filled with ones, which is NaN in every element type. */
LhBuffer *lh_buffer_new(const LhSlot *slot);
LhBuffer *lh_buffer_hold(LhBuffer *buffer);
/* Gives up a hold. The last one frees, and returns false if a canary was overwritten. */
bool lh_buffer_release(LhBuffer *buffer) G_GNUC_WARN_UNUSED_RESULT;

unsigned char *lh_buffer_part(const LhBuffer *buffer, uint32_t part);
bool lh_buffer_is_whole(const LhBuffer *buffer);
