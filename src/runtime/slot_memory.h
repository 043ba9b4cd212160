/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of slots on a device. A buffer is what one alloc op makes: its parts one after
 * another. One that is guarded is filled with what no result can be, and has canaries before the
 * first part and behind each, unless it is packed: as libraries want regions of several parts, with
 * nothing in between. Its holders are counted, as a stream-ordered allocator does it: the host
 * gives up its hold at `free`, and the memory is released when the last op that was issued before
 * has run.
 */
#pragma once

#include "program/program.h"
#include "runtime/api/compute_device.h"

/* What is before the first part, and at least what is behind each. */
#define LH_CANARY_BYTES 64

typedef struct {
    gint holds; /* of the host, one for each part; and of ops */
    uint32_t parts;
    uint64_t part_bytes, stride_bytes;
    uint64_t canary_bytes; /* before the first part, and at least as many behind each */
    unsigned char *memory;
    LhDeviceMark ready; /* behind what fills it; NULL: it is filled */
} LhBuffer;

typedef struct {
    uint32_t parts;
    uint64_t part_bytes;
    bool packed;
    bool guarded;
} LhBufferParams;

/* If guarded, its parts are being filled with ones, which is NaN in every element type. NULL with
 * @error. */
LhBuffer *lh_buffer_new(const LhPlaceOfWork *at, const LhBufferParams *params, GError **error);
LhBuffer *lh_buffer_hold(LhBuffer *buffer);

/* Waits until it is filled. */
bool lh_buffer_finish(LhBuffer *buffer, const LhPlaceOfWork *at, GError **error);
/* Has what is asked of the stream from now on come after that. */
bool lh_buffer_wait(LhBuffer *buffer, const LhPlaceOfWork *at, GError **error);

/* A buffer that nobody holds any more, until the device has said what is in its canaries. */
typedef struct {
    LhBuffer *buffer;
    unsigned char *found; /* canaries, when the mark has passed */
    LhDeviceMark mark;
} LhBufferEnd;

/* Gives up @holds holds. Of the last one, @end is what is left to do; else NULL. */
bool lh_buffer_give_up(LhBuffer *buffer, gint holds, const LhPlaceOfWork *at, LhBufferEnd **end,
                       GError **error);
/* 1: the memory is free again, and @whole says whether the canaries were; 0: not yet; -1: the
 * device failed. @end is gone unless 0 is returned. */
int lh_buffer_end_look(LhBufferEnd *end, const LhPlaceOfWork *at, bool *whole, GError **error);
/* Without a look, as soon as the device is done. */
void lh_buffer_end_free(LhBufferEnd *end, const LhPlaceOfWork *at);

/* All at once, and waits for it: gives up @holds holds. The last one frees, and sets @whole to
 * false if a canary was overwritten. False with @error if the device failed. NULL is allowed. */
bool lh_buffer_release(LhBuffer *buffer, gint holds, const LhPlaceOfWork *at, bool *whole,
                       GError **error);

static inline unsigned char *
lh_buffer_part(const LhBuffer *buffer, uint32_t part)
{
    return buffer->memory + buffer->canary_bytes + part * buffer->stride_bytes;
}
