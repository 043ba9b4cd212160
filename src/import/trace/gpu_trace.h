/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU traces of a run, as profilers recorded them: kernels with their times, and the steps that
 * they belong to. Times are whole nanoseconds of the profiler's clock. Clocks of ranks may differ,
 * so only durations, or times of one rank, are compared.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

typedef enum {
    LH_GPU_TRACE_ATTEND,      /* attention forward */
    LH_GPU_TRACE_ATTEND_GRAD, /* attention backward */
    LH_GPU_TRACE_HELPER,      /* runs before or after these: row sums, conversions, splits */
    LH_GPU_TRACE_MERGE,       /* merges partial results of context parallelism */
    LH_GPU_TRACE_COMM,        /* communication by NCCL or others */
    LH_GPU_TRACE_OTHER,
    LH_GPU_TRACE_CLASSES
} LhGpuTraceClass;

/* Transfer of a LH_GPU_TRACE_COMM: an LhCollectiveKind, or one of these. */
enum {
    LH_GPU_TRACE_MESSAGES = LH_COLL_KINDS, /* sends and receives */
    LH_GPU_TRACE_UNKNOWN,
};

typedef struct {
    int64_t start_ns, end_ns;
    uint64_t order;      /* ascending in launch order; 0: unknown */
    uint64_t bytes;      /* bytes moved, as NCCL's bandwidths count them; 0: unknown */
    uint32_t rank;       /* of the run */
    uint32_t stream;     /* as the profiler numbers it */
    uint32_t group_size; /* of a collective; 0: unknown */
    uint8_t class;       /* LhGpuTraceClass */
    uint8_t transfer;    /* of a LH_GPU_TRACE_COMM */
} LhGpuTrace;

typedef struct {
    int64_t start_ns, end_ns;
    uint64_t number;
    uint32_t rank;
} LhGpuTraceStep;

/* A file that was read. */
typedef struct {
    char *path;
    char *sha256;
    const char *kind;     /* "Kineto trace", ...; static */
    uint32_t rank;        /* the first one of the file */
    uint64_t events;      /* in the file */
    uint64_t broken;      /* events that are not valid JSON */
    uint64_t dropped;     /* events with invalid values: no time, a negative duration */
    guint kernels, steps; /* kept from the file */
} LhGpuTraceFile;

/* Limit of kernels in a run, beyond what profilers write; further ones are counted as dropped. */
#define LH_GPU_TRACE_KERNELS_MAX 33554432u
#define LH_GPU_TRACE_STEPS_MAX 100000u /* per file */

typedef struct {
    uint64_t unpacked_bytes_max; /* limit for a compressed file; 0: LH_KINETO_UNPACKED */
    GArray *kernels;             /* of LhGpuTrace: after lh_gpu_trace_finish(), by rank and start */
    GArray *steps;               /* of LhGpuTraceStep, likewise */
    GArray *files;               /* of LhGpuTraceFile */
} LhGpuTraceRun;

LhGpuTraceRun *lh_gpu_trace_new(void);
void lh_gpu_trace_free(LhGpuTraceRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhGpuTraceRun, lh_gpu_trace_free)

/*
 * Reads a trace and adds its contents: JSON of Kineto or of `longhaul --trace`, or a database of
 * Nsight Systems (nsys.h). LH_ERROR_INPUT with file and line. If the file does not give its rank,
 * the rank is the number of files read before.
 */
bool lh_gpu_trace_load(LhGpuTraceRun *run, const char *path, GError **error);

/* Sorts everything after the last file. LH_ERROR_INPUT if two files have the same rank, or if there
 * are no kernels. */
bool lh_gpu_trace_finish(LhGpuTraceRun *run, GError **error);
