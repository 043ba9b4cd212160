/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits constants of the simulator to traces: rates of attention's curves and link bandwidths, and
 * also half lengths and latencies if the traces distinguish them from these. Every guess is judged
 * by simulating the program, so that a message on a shared link does not count as a slow link.
 * Method: docs/manual/traces.md.
 */
#pragma once

#include "import/trace/trace_alignment.h"

typedef enum {
    LH_TRACE_FIT_RATE,        /* flop/s */
    LH_TRACE_FIT_BANDWIDTH,   /* bytes/s */
    LH_TRACE_FIT_HALF_LENGTH, /* tokens */
    LH_TRACE_FIT_LATENCY,     /* seconds */
    LH_TRACE_FIT_KINDS
} LhTraceFitKind;

/* "rate", "bandwidth", "half length", "latency"; NULL-terminated. */
extern const char *const lh_trace_fit_names[];

typedef struct {
    LhTraceFitKind kind;
    LhKernelId kernel; /* for curves */
    int mask;          /* for curves: 0 full, 1 causal */
    int tier;          /* for links: LhTier */
    double before, value;
    bool determined;               /* by the traces; else the value is unchanged */
    guint samples;                 /* number of samples that depend on it most */
    double length_min, length_max; /* block lengths of these samples, for a curve, in tokens */
    /* Over these samples: |simulated / measured - 1| with the fitted value, and before. */
    double off_median, off_worst, off_before;
} LhTraceFitted;

typedef struct {
    GArray *constants;             /* of LhTraceFitted: curves in order of kernels, then links */
    GArray *records;               /* of LhTimelineRecord: simulated with the fitted values */
    LhTime before_ps, makespan_ps; /* module or step, with the constants before and after the fit */
    uint64_t head_dim;
    guint rounds; /* number of iterations */
} LhTraceFit;

/*
 * Fits @setup, whose device and topology then have the fitted values. LH_ERROR_NO if no constant is
 * determined, or if a rate exceeds the device's peak, which means that program and traces do not
 * match. Caller frees.
 */
LhTraceFit *lh_trace_fit(LhSetup *setup, const LhProgram *program, const LhTraceAlignment *match,
                         GError **error);
void lh_trace_fit_free(LhTraceFit *tuning);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTraceFit, lh_trace_fit_free)
