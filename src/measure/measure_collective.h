/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a collective takes, measured by running a program of nothing else, which the simulator can
 * play as well.
 */
#pragma once

#include "runtime/executor.h"

/* On the first @members of @ranks ranks, with @shard_bytes (a multiple of 4) of the vector on each,
 * a few times one after the other. */
typedef struct {
    const LhBackend *backend;
    LhCollectiveWay way;
    uint32_t ranks;
    LhCollectiveKind kind;
    uint32_t members;
    uint64_t shard_bytes;
} LhCollectiveProbe;

/* The program, which borrows @probe. Caller frees. */
LhProgram *lh_collective_program(const LhCollectiveProbe *probe);

/* Of @records (of LhTimelineRecord, by rank and op) of it, from when all members are there to the
 * end: the median, the first time left out. */
double lh_collective_seconds(const LhCollectiveProbe *probe, const GArray *records);

/* The same of a run, by the devices' clocks; in processes other than the first, 0.
 * LH_ERROR_RUNTIME. */
bool lh_measure_collective(const LhCollectiveProbe *probe, double *seconds, GError **error);
