/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA versions of the kernels of the table: one row for each of lh_kernels. Plain C without CUDA
 * headers: builds without nvcc have these names too, and an empty table.
 */
#pragma once

#include "kernels/call.h"

typedef struct {
    /*
     * Enqueues the call on @stream, a cudaStream_t of the current device, and returns. Operands and
     * scratch are device memory. @call's own data is host memory, borrowed until the return.
     * LH_STATUS_UNSUPPORTED: nothing was enqueued.
     */
    enum lh_status (*run)(const LhCall *call, void *stream);
    /* Scratch bytes of a call; NULL: none. */
    uint64_t (*scratch_bytes)(const LhKernelArgs *args);
} LhCudaKernel;

/* Indexed by LhKernelId; NULL: no CUDA version. */
extern const LhCudaKernel *const lh_cuda_kernels[LH_KERNELS_COUNT];

/* Whether this program was built with CUDA kernels. */
bool lh_cuda_present(void);
