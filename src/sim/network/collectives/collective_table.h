/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What collectives of one node take, as measured: times at a few sizes, with lines in bytes
 * between them, and formulas for numbers of ranks that nobody measured. Sizes are those that
 * nccl-tests prints: of the whole vector for all-gather, reduce-scatter and all-reduce, and what
 * one rank sends in all, its own part included, for all-to-all and broadcast.
 */
#pragma once

#include "base/json/json.h"
#include "program/op.h"
#include "sim/cost/provenance.h"
#include "sim/network/collectives/measured_on.h"

#define LH_COLLECTIVE_PROTOCOLS 3
#define LH_COLLECTIVE_SIZES_MIN 2 /* of a row of times */

/* Beside collectives, what tables have times of: each GPU sends to the next one, and the last one
 * to the first, all at once, as sendrecv_perf of nccl-tests does. Sizes are those of a message. */
#define LH_TIMES_OF_SENDS LH_COLL_KINDS

/* Names of collectives, and "sendrecv"; NULL-terminated. */
extern const char *const lh_times_op_names[];

/* Times of one operation on so many GPUs of a node, as a topology file states them. Of rows of one
 * operation and number for different versions of NCCL the first holds. */
typedef struct {
    int op; /* LhCollectiveKind, or LH_TIMES_OF_SENDS */
    uint64_t ranks;
    char *nccl;    /* its versions, ", " between them; may be NULL */
    GArray *bytes; /* of uint64_t, rising */
    GArray *us;    /* of double: microseconds, likewise as many */
    int algorithm; /* LhLinkAlgorithm: what carried the bytes */
    LhMeasuredOn on;
    double bound_s_per_byte; /* what the links that it was measured on allow (measured.h) */
    double reached; /* of that, what it reached at its largest size; it stays as it was when the
                       file was read, whatever is then thought of those links */
    LhEvidence from;
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
    LhMeasuredOn on;
    LhEvidence from;
} LhCollectiveLines;

/* Its row @index; of a row, size @index, printed, and its microseconds. */
static inline const LhCollectiveTimes *
lh_collective_times_at(const GArray *times, guint index)
{
    return &g_array_index(times, LhCollectiveTimes, index);
}

static inline uint64_t
lh_times_bytes_at(const LhCollectiveTimes *row, guint index)
{
    return g_array_index(row->bytes, uint64_t, index);
}

static inline double
lh_times_us_at(const LhCollectiveTimes *row, guint index)
{
    return g_array_index(row->us, double, index);
}

/* Whether the row is of that version of NCCL. */
bool lh_collective_times_has_version(const LhCollectiveTimes *row, const char *version);

extern const LhField lh_collective_times_fields[];
extern const LhField lh_collective_lines_fields[];

/* Rules that fields do not say; arrays may be NULL. @path is that of the array in the file, of
 * nodes of @gpus GPUs; @has_switch: an NVSwitch joins them. */
bool lh_collective_times_check(const LhJson *json, const char *path, const GArray *times,
                               uint64_t gpus, bool has_switch, GError **error);
bool lh_collective_lines_check(const LhJson *json, const char *path, const GArray *lines,
                               GError **error);

/* Of a time above that of the first size, beyond what links take at the efficiency of large sizes:
 * how much goes with links. NCCL's LL is bound by the GPU, its other protocols by links, and which
 * one ran cannot be told. */
#define LH_PROTOCOLS_ON_LINKS 0.5

/* How the links are beside those that a row was measured on: what bytes and latencies take now,
 * over what they took there. And what of it is not known (docs/reference/model.md, "How far apart
 * is apart"): how much of what protocols take goes with links, from 0 to 1; and 1 or -1 for a time
 * that is as long or as short as it may be. */
typedef struct {
    double bytes, latency, protocols;
    int end;
} LhLinkSlowdown;

#define LH_LINK_AS_MEASURED ((LhLinkSlowdown){ 1, 1, LH_PROTOCOLS_ON_LINKS, 0 })
