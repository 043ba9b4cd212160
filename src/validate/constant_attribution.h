/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which constant explains what is off: every class of constants is scaled as a whole, everything is
 * predicted again, and the scale that comes nearest to what was measured is kept. Only one class is
 * scaled at a time. Method: docs/manual/validation.md, "Which constant".
 */
#pragma once

#include "program/pairing.h"
#include "scenario/setup.h"

typedef enum {
    LH_ATTRIBUTION_KERNELS,      /* rates of all kernels, memory traffic included */
    LH_ATTRIBUTION_LATENCY,      /* of links */
    LH_ATTRIBUTION_BANDWIDTH,    /* likewise */
    LH_ATTRIBUTION_HOST,         /* kernel_launch and stream_sync */
    LH_ATTRIBUTION_COLLECTIVES,  /* times of collectives that are known by size */
    LH_ATTRIBUTION_INTERFERENCE, /* SMs that messages hold */
    LH_ATTRIBUTION_CLASSES
} LhAttributionClass;

/* "kernels", "latency", "bandwidth", ...; NULL-terminated. */
extern const char *const lh_attribution_names[];

/* A schedule as it was measured. */
typedef struct {
    const LhProgram *program;
    const LhPairing *meetings;
    double makespan_s;
    const double *took_s; /* of every record that the meetings are of */
} LhAttributionCase;

typedef struct {
    bool applies; /* something depends on it, and there is something to scale */
    double scale; /* of the times, or of the SMs: 1.2 is a fifth more than was predicted */
    double error; /* with that */
} LhAttribution;

typedef struct {
    double error; /* as predicted: the mean of what ops and makespans are off, as a share */
    LhAttribution classes[LH_ATTRIBUTION_CLASSES];
    int best;   /* LhAttributionClass that leaves the least; -1: none makes it at least a fifth less
                 */
    bool alike; /* another one does nearly as well: what was run does not tell them apart */
    int second;
} LhAttributed;

/* How much of the error must go for a class to be named. */
#define LH_ATTRIBUTION_SHARE 0.2

/* Simulates the cases again and again. False with @error if a simulation breaks. */
bool lh_attribution(const LhSetup *setup, const LhAttributionCase *cases, uint32_t count,
                    LhAttributed *explained, GError **error);

/* A timeline: appends calls, messages and collectives to @data, a GArray of LhTimelineRecord. */
void lh_attribution_collect(void *data, const LhTimelineRecord *record);
