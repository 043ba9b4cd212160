/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timing of kernels on devices whose work is enqueued. All devices of this process call the kernel
 * at the same time; marks around each call give its duration.
 */
#pragma once

#include "measure/measure.h"

typedef struct {
    const LhRunDevice *device;
    uint32_t first, count; /* ordinals of the machine's devices */
    bool alone;            /* this process may see only its own device */
    uint32_t kernel_set;
    LhStatistic statistic;
    uint32_t repeats; /* counted timings of each call, after a warm-up */
} LhBenchParams;

typedef struct _LhBench LhBench;

/* Opens the devices. NULL with @error; caller frees. */
LhBench *lh_bench_new(const LhBenchParams *params, GError **error);
void lh_bench_free(LhBench *bench);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhBench, lh_bench_free)

/*
 * Measures one call, in seconds, with operands that are in no cache and activations of @dtype. The
 * result is the median over devices of the statistic; 0 if the devices do not support the kernel.
 */
bool lh_bench_kernel(LhBench *bench, LhKernelId kernel, const LhKernelArgs *args, LhDtype dtype,
                     double *seconds, GError **error);
