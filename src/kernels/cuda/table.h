/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an NVIDIA GPU computes the kernels of the table: one row beside each of lh_kernels. Plain C,
 * and no header of CUDA: whoever builds without nvcc has these names, too, and an empty table.
 */
#pragma once

#include "kernels/call.h"

typedef struct {
    /*
     * Enqueues the call on @stream, a cudaStream_t of the current device, and returns; operands and
     * scratch are device memory. What @call itself points to is host memory, borrowed until the
     * return. LH_STATUS_UNSUPPORTED: nothing was enqueued.
     */
    enum lh_status (*run)(const LhCall *call, void *stream);
    /* What it needs of scratch memory, in bytes; NULL: nothing. */
    uint64_t (*scratch_bytes)(const LhKernelArgs *args);
} LhCudaKernel;

/* Indexed by LhKernelId; NULL: GPUs lack it. */
extern const LhCudaKernel *const lh_cuda_kernels[LH_KERNELS_COUNT];

/* Whether this program was built with them. */
bool lh_cuda_present(void);
