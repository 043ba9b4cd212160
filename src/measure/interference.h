/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how much communication slows kernels down. It runs a ring with full masks: all kernels
 * do the same work, and all but the last of each rank overlap with messages.
 */
#pragma once

#include "runtime/backend.h"
#include "runtime/executor.h"

#define LH_INTERFERENCE_TURNS 16 /* runs of the ring; the first is a warm-up */

typedef struct {
    const LhBackend *backend;
    uint32_t kernel_set, ranks;
    uint64_t tokens; /* per rank */
    uint32_t heads, head_dim;
    LhDtype dtype;
    int64_t deadline_us;
} LhInterference;

/* Estimates the slowdown from the records of one run: the median over attention kernels of the time
 * added per time of overlap with messages, from 0 to 1; -1 if no kernel shows it. */
double lh_interference_share(const GArray *records);

/*
 * Measures the share of its speed that a rank loses while it has messages in flight: the median
 * over all runs but the first. *@held is -1 if no run shows it, and in processes other than the
 * first. False with @error if a run fails.
 */
bool lh_measure_interference(const LhInterference *probe, double *held, GError **error);
