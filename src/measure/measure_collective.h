/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures collectives by running a program that consists of one only, which the simulator can run
 * too.
 */
#pragma once

#include "runtime/executor.h"

/* A collective on the first @members of @ranks ranks, with @shard_bytes (a multiple of 4) of the
 * vector on each, repeated a few times. */
typedef struct {
    const LhBackend *backend;
    LhCollectiveWay way;
    uint32_t ranks;
    LhCollectiveKind kind;
    uint32_t members;
    uint64_t shard_bytes;
} LhCollectiveProbe;

/* Creates the program, which borrows @probe. Caller frees. */
LhProgram *lh_collective_program(const LhCollectiveProbe *probe);

/* Duration of the collective from @records (LhTimelineRecord, by rank and op) of the program: from
 * the last start of a member to the last end, as the median without the first repetition. */
double lh_collective_seconds(const LhCollectiveProbe *probe, const GArray *records);

/* Measures that duration in a run, by the devices' clocks; 0 in processes other than the first.
 * LH_ERROR_RUNTIME. */
bool lh_measure_collective(const LhCollectiveProbe *probe, double *seconds, GError **error);
