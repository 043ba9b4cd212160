/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of one program beside its prediction, joined on rank and op.
 */
#pragma once

#include "program/pairing.h"
#include "program/timeline.h"
#include "runtime/executor.h"

/* All repeats of one program. */
typedef struct {
    GArray *predicted;          /* of LhTimelineRecord, by rank and op */
    LhPairing *meetings;        /* of these; what they take is without waiting for others; NULL: of
                                    a rank alone */
    LhReplay *replay;           /* of a rank alone, whose records are all there are; else NULL */
    GArray *times;              /* of double: [record][repeat], measured */
    GArray *makespans, *starts; /* of double: [repeat] */
    uint64_t repeat;
    double tick_s; /* the device's: an op that took less is as one that took so long */
} LhJoinedRuns;

/* What record @i of @records took once it and all that it meets had begun. */
double lh_joined_took(const LhJoinedRuns *j, const GArray *records, guint i);

/* Adds one run: the same ops, or something is wrong with one of the two readers of the program. */
bool lh_joined_add(LhJoinedRuns *j, uint64_t run, GArray *measured, const LhRunResult *result,
                   GError **error);

/* Frees what it has. */
void lh_joined_clear(LhJoinedRuns *j);

/* The one at @index of @records, of LhTimelineRecord. */
const LhTimelineRecord *lh_joined_record(const GArray *records, guint index);

double lh_joined_seconds(LhTime time_ps);
