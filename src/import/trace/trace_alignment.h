/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was seen on GPUs, laid over the ops of a program. A profiler does not know ops, but the
 * kernels of one kind are launched in the program's order: a rank's i-th attention forward of each
 * layer is the i-th that its program has. Where a trace does not say what was launched when, they
 * are taken to start in the order in which the simulated ones do. A message takes as long as the
 * shorter one of its two ends, which did not wait for the other; so clocks of ranks need not agree.
 * The simulated times that they are held against are taken by the same rule.
 */
#pragma once

#include "import/trace/gpu_trace.h"
#include "scenario/setup.h"

/* A call of attention, a message, or a collective, which was seen at least once. */
typedef struct {
    uint8_t kind;       /* LhOpKind */
    LhKernelId kernel;  /* compute */
    bool triangle;      /* likewise: which curve of the kernel it takes ... */
    double keys;        /* ... and at which length, in tokens */
    uint8_t transfer;   /* exchange, collective: as LhGpuTrace has it */
    uint8_t tier;       /* LhTier; LH_TIMELINE_NO_TIER: none */
    guint first, count; /* of its ops that were seen, among the match's members */
    uint32_t repeats;   /* how often it was seen */
    double measured_s;  /* median over them */
    double spread;      /* (slowest - fastest) / median of them */
} LhSample;

/* Of a call of attention. */
typedef struct {
    bool triangle;
    double keys;
} LhTraceBlock;

typedef struct {
    GArray *records;  /* of LhTimelineRecord: the ops as simulated, by rank and op */
    GArray *samples;  /* of LhSample */
    GArray *members;  /* of guint: indices of records */
    GPtrArray *notes; /* of char *: what could not be matched, in sentences */
    GArray *blocks;   /* of LhTraceBlock: by record; of ops that compute attention */
    GArray *measured; /* of double: by record, the median of what was seen of it; 0: nothing */
    uint32_t ranks;   /* that traces are of */
    uint32_t steps;   /* of the rank that has the fewest; 0: none are marked */
    uint32_t calls;   /* of the attention module in each step */
} LhTraceAlignment;

/*
 * @program is what was run, as @setup simulates it. LH_ERROR_INPUT if the kernels of attention are
 * not those of the program: then it is another one. Communication that does not fit is a note.
 * Caller frees.
 */
LhTraceAlignment *lh_trace_alignment_new(const LhGpuTraceRun *run, const LhSetup *setup,
                                         const LhProgram *program, GError **error);
void lh_trace_alignment_free(LhTraceAlignment *match);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTraceAlignment, lh_trace_alignment_free)

/* Simulates @program into @records (of LhTimelineRecord, by rank and op), on @network if it is not
 * NULL. */
bool lh_trace_alignment_simulate(const LhSetup *setup, const LhProgram *program,
                                 const LhNetwork *network, GArray *records, LhTime *makespan_ps,
                                 GError **error);

/* What a sample takes by @records: the shortest of its members. */
double lh_sample_seconds(const LhTraceAlignment *match, const LhSample *sample,
                         const GArray *records);
