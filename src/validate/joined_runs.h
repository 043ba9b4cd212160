/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured runs of one program, joined with its prediction on rank and op.
 */
#pragma once

#include "program/pairing.h"
#include "program/timeline.h"
#include "runtime/executor.h"

/* All runs of one program. */
typedef struct {
    GArray *predicted; /* of LhTimelineRecord, by rank and op */
    /* Pairs the records; durations exclude waiting for peers. NULL: a rank alone. */
    LhPairing *meetings;
    LhReplay *replay;           /* for a rank alone, whose records are the only ones; else NULL */
    GArray *times;              /* of double: [record][repeat], measured */
    GArray *makespans, *starts; /* of double: [repeat] */
    uint64_t repeat;
    double tick_s; /* clock resolution of the device: shorter ops count as this long */
} LhJoinedRuns;

/* Duration of record @i of @records, from the time when it and all its peers had begun, in
 * seconds. */
double lh_joined_took(const LhJoinedRuns *j, const GArray *records, guint i);

/* Adds one run. LH_ERROR_RUNTIME if its ops are not those of the prediction, which means that the
 * executor and the simulator disagree about the program. */
bool lh_joined_add(LhJoinedRuns *j, uint64_t run, GArray *measured, const LhRunResult *result,
                   GError **error);

/* Frees the members. */
void lh_joined_clear(LhJoinedRuns *j);

/* The LhTimelineRecord at @index of @records. */
const LhTimelineRecord *lh_joined_record(const GArray *records, guint index);

double lh_joined_seconds(LhTime time_ps);
