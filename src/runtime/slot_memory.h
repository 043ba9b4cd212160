/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of slots. A buffer is the memory of one alloc op: its parts one after another. A
 * guarded buffer is filled with a value that no result can have, and has canaries before the first
 * part and after each part, unless it is packed (no gaps, as libraries require for regions of
 * several parts). Buffers are reference counted, as in a stream-ordered allocator: the host
 * releases its hold at `free`, and the memory is freed when the last op issued before has run.
 */
#pragma once

#include "program/program.h"
#include "runtime/api/compute_device.h"

/* Size of the canary before the first part; the canary after each part is at least as large. */
#define LH_CANARY_BYTES 64

typedef struct {
    gint holds; /* the host's, one for each part, and those of ops */
    uint32_t parts;
    uint64_t part_bytes, stride_bytes;
    uint64_t canary_bytes; /* before the first part; at least as many after each */
    unsigned char *memory;
    LhDeviceMark ready; /* mark after the fill; NULL: filled */
} LhBuffer;

typedef struct {
    uint32_t parts;
    uint64_t part_bytes;
    bool packed;
    bool guarded;
} LhBufferParams;

/* Allocates a buffer. If guarded, its parts are being filled with ones, which is NaN in every
 * element type. NULL with @error. */
LhBuffer *lh_buffer_new(const LhPlaceOfWork *at, const LhBufferParams *params, GError **error);
LhBuffer *lh_buffer_hold(LhBuffer *buffer);

/* Waits until the buffer is filled. */
bool lh_buffer_finish(LhBuffer *buffer, const LhPlaceOfWork *at, GError **error);
/* Orders everything enqueued on the stream from now on after the fill. */
bool lh_buffer_wait(LhBuffer *buffer, const LhPlaceOfWork *at, GError **error);

/* A buffer without holders, until the device has read its canaries. */
typedef struct {
    LhBuffer *buffer;
    unsigned char *found; /* canaries, valid when the mark has passed */
    LhDeviceMark mark;
} LhBufferEnd;

/* Releases @holds holds. For the last one, sets @end to the remaining work, else to NULL. */
bool lh_buffer_give_up(LhBuffer *buffer, gint holds, const LhPlaceOfWork *at, LhBufferEnd **end,
                       GError **error);
/* Polls. 1: the memory is freed, and @whole says whether the canaries are intact; 0: not yet; -1:
 * the device failed. @end is freed unless 0 is returned. */
int lh_buffer_end_look(LhBufferEnd *end, const LhPlaceOfWork *at, bool *whole, GError **error);
/* Frees without checking, when the device has finished. */
void lh_buffer_end_free(LhBufferEnd *end, const LhPlaceOfWork *at);

/* Synchronously releases @holds holds; the last one frees and sets @whole to false if a canary was
 * overwritten. False with @error if the device failed. @buffer may be NULL. */
bool lh_buffer_release(LhBuffer *buffer, gint holds, const LhPlaceOfWork *at, bool *whole,
                       GError **error);

static inline unsigned char *
lh_buffer_part(const LhBuffer *buffer, uint32_t part)
{
    return buffer->memory + buffer->canary_bytes + part * buffer->stride_bytes;
}
