/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of the kernels of the table: one row for each of lh_kernels.
 */
#pragma once

#include "kernels/call.h"

typedef struct {
    /* Reference: fp64 arithmetic between the operands' storage types; slow and straightforward. */
    LhKernelRun reference;
    /* Fast version, on the calling thread; the reference itself where that is as fast. */
    LhKernelRun fast;
    /* Scratch bytes that both versions need; NULL: none. */
    uint64_t (*scratch_bytes)(const LhKernelArgs *args);
} LhCpuKernel;

/* Indexed by LhKernelId. */
extern const LhCpuKernel *const lh_cpu_kernels[LH_KERNELS_COUNT];

/* Returns the scratch bytes of a call of @kernel, or 0. */
uint64_t lh_cpu_scratch_bytes(LhKernelId kernel, const LhKernelArgs *args);
