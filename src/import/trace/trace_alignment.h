/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alignment of GPU traces with the ops of a program. A profiler does not know ops, but kernels of
 * one kind are launched in program order: a rank's i-th attention forward kernel of a layer is the
 * i-th of its program. If a trace has no launch order, kernels are assumed to start in the
 * simulated order. The duration of a message is that of its shorter end, which did not wait for the
 * other; clocks of ranks therefore need not agree. Simulated times are compared by the same rule.
 */
#pragma once

#include "import/trace/gpu_trace.h"
#include "scenario/setup.h"

/* A call of attention, a message, or a collective, traced at least once. */
typedef struct {
    uint8_t kind;       /* LhOpKind */
    LhKernelId kernel;  /* for compute */
    bool triangle;      /* for compute: the kernel's curve, full or triangle ... */
    double keys;        /* ... and the length on it, in tokens */
    uint8_t transfer;   /* exchange, collective: see LhGpuTrace */
    uint8_t tier;       /* LhTier; LH_TIMELINE_NO_TIER: none */
    guint first, count; /* its traced ops, in the alignment's members */
    uint32_t repeats;   /* number of measurements */
    double measured_s;  /* median over the measurements */
    double spread;      /* (slowest - fastest) / median */
} LhSample;

/* Shape of a call of attention. */
typedef struct {
    bool triangle;
    double keys;
} LhTraceBlock;

typedef struct {
    GArray *records;  /* of LhTimelineRecord: the simulated ops, by rank and op */
    GArray *samples;  /* of LhSample */
    GArray *members;  /* of guint: indices of records */
    GPtrArray *notes; /* of char *: sentences on what could not be matched */
    GArray *blocks;   /* of LhTraceBlock, by record; set for ops of attention */
    GArray *measured; /* of double, by record: median measurement; 0: not traced */
    uint32_t ranks;   /* number of traced ranks */
    uint32_t steps;   /* of the rank with the fewest; 0: not marked */
    uint32_t calls;   /* calls of the attention module per step */
} LhTraceAlignment;

/*
 * Aligns the traces with @program, which @setup simulates. LH_ERROR_INPUT if the attention kernels
 * are not those of the program, which is then another one. Communication that does not match is a
 * note. Caller frees.
 */
LhTraceAlignment *lh_trace_alignment_new(const LhGpuTraceRun *run, const LhSetup *setup,
                                         const LhProgram *program, GError **error);
void lh_trace_alignment_free(LhTraceAlignment *match);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTraceAlignment, lh_trace_alignment_free)

/* Simulates @program into @records (LhTimelineRecord, by rank and op), on @network unless it is
 * NULL. */
bool lh_trace_alignment_simulate(const LhSetup *setup, const LhProgram *program,
                                 const LhNetwork *network, GArray *records, LhTime *makespan_ps,
                                 GError **error);

/* Duration of a sample by @records: that of its shortest member. */
double lh_sample_seconds(const LhTraceAlignment *match, const LhSample *sample,
                         const GArray *records);
