/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a CPU computes the kernels of the table: one row beside each of lh_kernels.
 */
#pragma once

#include "kernels/call.h"

typedef struct {
    /* Slow and obvious: fp64 arithmetic between the operands' storage types. */
    LhKernelRun reference;
    /* Fast, on the calling thread alone; the reference itself where that is simple and as fast. */
    LhKernelRun fast;
    /* What either of the two needs of scratch memory, in bytes; NULL: nothing. */
    uint64_t (*scratch_bytes)(const LhKernelArgs *args);
} LhCpuKernel;

/* Indexed by LhKernelId. */
extern const LhCpuKernel *const lh_cpu_kernels[LH_KERNELS_COUNT];

/* What a call of @kernel needs of scratch memory; 0: nothing. */
uint64_t lh_cpu_scratch_bytes(LhKernelId kernel, const LhKernelArgs *args);
