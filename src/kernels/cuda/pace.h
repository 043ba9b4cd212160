/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time on a GPU: makes a stream wait until the GPU's clock reaches a deadline. The clock counts
 * nanoseconds and is the same for all streams of a GPU.
 */
#pragma once

#include "kernels/status.h"

#include <stdint.h>

/* A deadline: max(*begun, *epoch + others_ns) + took_ns. */
typedef struct {
    const uint64_t *epoch, *begun; /* device memory, written by lh_cuda_stamp() */
    uint64_t others_ns, took_ns;
} LhCudaPace;

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues a write of the clock to @cell, in device memory. */
enum lh_status lh_cuda_stamp(uint64_t *cell, void *stream);
/* Enqueues a wait for the deadline; later work in the stream begins after it. */
enum lh_status lh_cuda_pace(const LhCudaPace *pace, void *stream);

#ifdef __cplusplus
}
#endif
