/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time on a GPU: a stream that waits until its clock has come to a moment. The clock counts
 * nanoseconds and is the same for all streams of a GPU.
 */
#pragma once

#include "kernels/status.h"

#include <stdint.h>

/* A moment that is @took_ns behind the later of two: *begun, and @others_ns behind *epoch. */
typedef struct {
    const uint64_t *epoch, *begun; /* in the device's memory, from lh_cuda_stamp() */
    uint64_t others_ns, took_ns;
} LhCudaPace;

#ifdef __cplusplus
extern "C" {
#endif

/* Writes what the clock says to @cell, in the device's memory. */
enum lh_status lh_cuda_stamp(uint64_t *cell, void *stream);
/* What is enqueued behind it begins no earlier than that moment. */
enum lh_status lh_cuda_pace(const LhCudaPace *pace, void *stream);

#ifdef __cplusplus
}
#endif
