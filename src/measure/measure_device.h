/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of kernels on devices whose work is enqueued: all devices of this process call the kernel
 * at the same time, and marks around each call say what it took.
 */
#pragma once

#include "measure/measure.h"

typedef struct {
    const LhRunDevice *device;
    uint32_t first, count; /* ordinals of the devices of this machine */
    bool alone;            /* this process may see its own device alone */
    uint32_t kernel_set;
    LhStatistic statistic;
    uint32_t repeats; /* timings of each call, after one that does not count */
} LhBenchParams;

typedef struct _LhBench LhBench;

/* Opens the devices. NULL with @error; caller frees. */
LhBench *lh_bench_new(const LhBenchParams *params, GError **error);
void lh_bench_free(LhBench *bench);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhBench, lh_bench_free)

/*
 * Seconds of one call with operands that are in no cache: the median over devices of the statistic.
 * Activations of @dtype. 0 if the devices have no such kernel.
 */
bool lh_bench_kernel(LhBench *bench, LhKernelId kernel, const LhKernelArgs *args, LhDtype dtype,
                     double *seconds, GError **error);
