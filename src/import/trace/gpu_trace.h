/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a profiler saw on the GPUs of a run: kernels with their times, and the steps that they
 * belong to. Times are whole nanoseconds of the profiler's clock, which need not be the same on two
 * ranks: what is made of them compares times of one rank only, or durations.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

typedef enum {
    LH_GPU_TRACE_ATTEND,      /* attention forward */
    LH_GPU_TRACE_ATTEND_GRAD, /* attention backward */
    LH_GPU_TRACE_HELPER,      /* what comes before or after these: row sums, conversions, splits */
    LH_GPU_TRACE_MERGE,       /* joins partial results of context parallelism */
    LH_GPU_TRACE_COMM,        /* NCCL and others */
    LH_GPU_TRACE_OTHER,
    LH_GPU_TRACE_CLASSES
} LhGpuTraceClass;

/* What a LH_GPU_TRACE_COMM does: an LhCollectiveKind, or one of these. */
enum {
    LH_GPU_TRACE_MESSAGES = LH_COLL_KINDS, /* sends and receives */
    LH_GPU_TRACE_UNKNOWN,
};

typedef struct {
    int64_t start_ns, end_ns;
    uint64_t order;      /* grows in the order in which the host launched them; 0: not said */
    uint64_t bytes;      /* that it moves, as bandwidths of NCCL count them; 0: not said */
    uint32_t rank;       /* of the run */
    uint32_t stream;     /* as the profiler numbers it */
    uint32_t group_size; /* of a collective; 0: not said */
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
    uint32_t rank;        /* the first of those that it has */
    uint64_t events;      /* in the file */
    uint64_t broken;      /* that could not be read */
    uint64_t dropped;     /* that were read and make no sense: no time, a negative duration */
    guint kernels, steps; /* that were kept */
} LhGpuTraceFile;

/* More than any profiler writes of a run; the rest is counted as dropped. */
#define LH_GPU_TRACE_KERNELS_MAX 33554432u
#define LH_GPU_TRACE_STEPS_MAX 100000u /* of a file */

typedef struct {
    uint64_t unpacked_bytes_max; /* of a file that is packed; 0: LH_KINETO_UNPACKED */
    GArray *kernels; /* of LhGpuTrace: by rank, then as they started, once lh_gpu_trace_finish() is
                        through */
    GArray *steps;   /* of LhGpuTraceStep, likewise */
    GArray *files;   /* of LhGpuTraceFile */
} LhGpuTraceRun;

LhGpuTraceRun *lh_gpu_trace_new(void);
void lh_gpu_trace_free(LhGpuTraceRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhGpuTraceRun, lh_gpu_trace_free)

/*
 * Reads a trace, JSON of Kineto or of `longhaul --trace`, or a database of Nsight Systems (nsys.h),
 * and adds what it has. LH_ERROR_INPUT with file and line. Of a file that does not say its rank,
 * that is the number of files read before.
 */
bool lh_gpu_trace_load(LhGpuTraceRun *run, const char *path, GError **error);

/* After the last file: puts all in order. LH_ERROR_INPUT if two files are of one rank, or nothing
 * was seen. */
bool lh_gpu_trace_finish(LhGpuTraceRun *run, GError **error);
