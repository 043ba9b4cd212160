/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of the simulator that make it take as long as what was seen: the rates of attention's
 * curves and the bandwidths of links, and beyond them lengths of half rate and latencies where what
 * was seen tells the two apart. Every guess is judged by simulating the program, so that a message
 * that shares its link is not taken for a slow one. Method: docs/manual/traces.md.
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
    LhKernelId kernel; /* of curves */
    int mask;          /* likewise: 0 full, 1 causal */
    int tier;          /* LhTier, of links */
    double before, value;
    bool determined;               /* by what was seen; else the value is the one before */
    guint samples;                 /* that depend on it most */
    double length_min, length_max; /* of these: blocks of a curve, in tokens */
    /* Of these: |simulated / measured - 1| with the values found; and before. */
    double off_median, off_worst, off_before;
} LhTraceFitted;

typedef struct {
    GArray *constants; /* of LhTraceFitted: curves in the order of kernels, then links */
    GArray *records;   /* of LhTimelineRecord: as simulated with the values found */
    LhTime before_ps, makespan_ps; /* of the module, or step, with the constants before and found */
    uint64_t head_dim;
    guint rounds; /* of fitting */
} LhTraceFit;

/*
 * Fits @setup, whose device and topology have the values found afterwards. LH_ERROR_NO if nothing
 * is determined, or a rate is found above the device's peak: then program and trace are of two
 * cases. Caller frees.
 */
LhTraceFit *lh_trace_fit(LhSetup *setup, const LhProgram *program, const LhTraceAlignment *match,
                         GError **error);
void lh_trace_fit_free(LhTraceFit *tuning);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTraceFit, lh_trace_fit_free)
