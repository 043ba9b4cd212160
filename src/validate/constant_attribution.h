/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes the error of predictions to a class of constants. Each class is scaled as a whole,
 * everything is predicted again, and the scale with the least error is kept. Only one class is
 * scaled at a time. Method: docs/manual/validation.md, "Which constant".
 */
#pragma once

#include "program/pairing.h"
#include "scenario/setup.h"

typedef enum {
    LH_ATTRIBUTION_KERNELS,      /* rates of all kernels, including memory traffic */
    LH_ATTRIBUTION_LATENCY,      /* link latencies */
    LH_ATTRIBUTION_BANDWIDTH,    /* link bandwidths */
    LH_ATTRIBUTION_HOST,         /* kernel_launch and stream_sync */
    LH_ATTRIBUTION_COLLECTIVES,  /* measured times of collectives by size */
    LH_ATTRIBUTION_INTERFERENCE, /* SMs held by communication */
    LH_ATTRIBUTION_CLASSES
} LhAttributionClass;

/* "kernels", "latency", "bandwidth", ...; NULL-terminated. */
extern const char *const lh_attribution_names[];

/* Measurements of one schedule. */
typedef struct {
    const LhProgram *program;
    const LhPairing *meetings;
    double makespan_s;
    const double *took_s; /* of every record that @meetings pairs */
} LhAttributionCase;

typedef struct {
    bool applies; /* some prediction depends on this class, and it has constants to scale */
    double scale; /* factor of the times, or of the SMs: 1.2 is a fifth more than predicted */
    double error; /* remaining error at this scale */
} LhAttribution;

typedef struct {
    /* Mean error of ops and makespans as predicted, as a logarithm: see constant_attribution.c. */
    double error;
    LhAttribution classes[LH_ATTRIBUTION_CLASSES];
    /* LhAttributionClass with the least remaining error; -1: none reduces it by a fifth. */
    int best;
    bool alike; /* @second explains it nearly as well: these runs cannot distinguish them */
    int second;
} LhAttributed;

/* Least reduction of the error for a class to be named. */
#define LH_ATTRIBUTION_SHARE 0.2

/* Finds the class. Simulates the cases several hundred times. False with @error if a simulation
 * fails. */
bool lh_attribution(const LhSetup *setup, const LhAttributionCase *cases, uint32_t count,
                    LhAttributed *explained, GError **error);

/* A timeline function: appends compute ops, exchanges and collectives to @data, a GArray of
 * LhTimelineRecord. */
void lh_attribution_collect(void *data, const LhTimelineRecord *record);
