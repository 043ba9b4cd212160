/*
 * What collectives of one node take, as measured: times at a few sizes, with lines in bytes
 * between them, and formulas for numbers of ranks that nobody measured. Sizes are those that
 * nccl-tests prints: of the whole vector for all-gather, reduce-scatter and all-reduce, and what
 * one rank sends in all, its own part included, for all-to-all and broadcast.
 */
#pragma once

#include "base/json.h"
#include "base/jsonw.h"
#include "program/op.h"

#define LH_COLLECTIVE_PROTOCOLS 3

/* Limits of topology files. */
#define LH_TOPOLOGY_TEXT_MAX 1000
#define LH_BANDWIDTH_MIN 1.0
#define LH_BANDWIDTH_MAX 1e15
#define LH_LATENCY_MAX_S 1.0

/* Times of one operation on so many GPUs of a node, as a topology file states them. Of rows of one
 * operation and number for different versions of NCCL the first holds. */
typedef struct {
    int op; /* LhCollectiveKind */
    uint64_t ranks;
    char *nccl;     /* its versions, ", " between them; may be NULL */
    GArray *bytes;  /* of uint64_t, rising */
    GArray *us;     /* of double: microseconds, likewise as many */
    int provenance; /* LhProvenance */
    char *source;
} LhCollectiveTimes;

/* base + hop h + w / bandwidth + m / copy: h hops, w bytes that a rank sends, m of them to one
 * other. */
typedef struct {
    LhTime base_ps, hop_ps;
    double bandwidth, copy; /* nocheck:unit: bytes/s, named as in the file; 0: no such part */
} LhCollectiveLine;

/* A formula for one operation: three lines, and the bytes that a rank sends up to which the first
 * and the second hold. NCCL calls its protocols so. */
typedef struct {
    int op; /* LhCollectiveKind */
    LhCollectiveLine ll, ll128, simple;
    uint64_t ll_bytes, ll128_bytes;
    int provenance; /* LhProvenance */
    char *source;
} LhCollectiveLines;

extern const LhField lh_collective_times_fields[];
extern const LhField lh_collective_lines_fields[];

/* Rules that fields do not say; arrays may be NULL. @path is that of the array in the file. */
bool lh_collective_times_check(const LhJson *json, const char *path, const GArray *times,
                               uint64_t gpus, GError **error);
bool lh_collective_lines_check(const LhJson *json, const char *path, const GArray *lines,
                               GError **error);

/* A row of times as files have them. */
void lh_collective_times_write(LhJsonWriter *w, const LhCollectiveTimes *row);

/* The size of a collective as nccl-tests would print it, of @shard_bytes per rank. */
double lh_collective_printed_bytes(LhCollectiveKind kind, uint64_t ranks, double shard_bytes);

/* From now on rows of this version of NCCL hold, where there are any; false if there are none. */
bool lh_collective_times_choose(GArray *times, const char *version);

/*
 * Seconds of @kind with @bytes, printed, on @ranks GPUs; false, and nothing set, if the rows (NULL:
 * none) do not reach so far: a number of ranks that no row has must lie between two that rows have.
 * Below the first size its time holds, beyond the last one the last piece goes on; in between times
 * rise and fall as those of the sizes next to them do. @provenance is the weakest of the rows that
 * are used.
 */
bool lh_collective_times_seconds(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
                                 double bytes, double *seconds, int *provenance);

/* Takes the time at @bytes of @kind on @ranks GPUs out of its row, to see what the others say of
 * this size; false if there is none, or only two sizes are there. */
bool lh_collective_times_leave_out(GArray *times, LhCollectiveKind kind, uint64_t ranks,
                                   uint64_t bytes);

/* As lh_collective_times_seconds(), by formula, for any number of ranks from two on; false if the
 * kind has none. */
bool lh_collective_lines_seconds(const GArray *lines, LhCollectiveKind kind, uint64_t ranks,
                                 double bytes, double *seconds, int *provenance);
