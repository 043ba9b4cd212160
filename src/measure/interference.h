/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much messages slow kernels down: by a ring with full masks, all of whose kernels do the same
 * work, and all but the last of a rank run beside messages.
 */
#pragma once

#include "runtime/backend.h"
#include "runtime/executor.h"

#define LH_INTERFERENCE_TURNS 16 /* of the ring; the first does not count */

typedef struct {
    const LhBackend *backend;
    uint32_t kernel_set, ranks;
    uint64_t tokens; /* of a rank */
    uint32_t heads, head_dim;
    LhDtype dtype;
    int64_t deadline_us;
} LhInterference;

/* What the records of one run say, of all its ranks: the median over attention kernels of what
 * those beside messages took longer than those alone, from 0 to 1; -1 if no kernel tells of it. */
double lh_interference_share(const GArray *records);

/*
 * The share of its speed that a rank loses to messages while it has some: the median over the turns
 * but the first. -1 if none tells of it, and in processes other than the first. False with @error
 * if a run broke.
 */
bool lh_measure_interference(const LhInterference *probe, double *held, GError **error);
