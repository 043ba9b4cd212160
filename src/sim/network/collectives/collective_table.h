/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured times of collectives within one node: times at a few sizes, interpolated linearly in
 * bytes, and formulas for numbers of ranks that were not measured. Sizes are those that nccl-tests
 * prints: the whole vector for all-gather, reduce-scatter and all-reduce; the bytes that one rank
 * sends in total, including its own part, for all-to-all and broadcast.
 */
#pragma once

#include "base/json/json.h"
#include "program/op.h"
#include "sim/cost/provenance.h"
#include "sim/network/collectives/measured_on.h"

#define LH_COLLECTIVE_PROTOCOLS 3
#define LH_COLLECTIVE_SIZES_MIN 2 /* per row of times */

/* An operation of the tables beside collectives: each GPU sends to the next, and the last one to
 * the first, all at once, as in sendrecv_perf of nccl-tests. Sizes are those of a message. */
#define LH_TIMES_OF_SENDS LH_COLL_KINDS

/* Names of collectives, and "sendrecv"; NULL-terminated. */
extern const char *const lh_times_op_names[];

/* Measured times of one operation on a number of GPUs of a node, as in a topology file. If several
 * rows have the same operation and number, for different versions of NCCL, the first one is used.
 */
typedef struct {
    int op; /* LhCollectiveKind, or LH_TIMES_OF_SENDS */
    uint64_t ranks;
    char *nccl;    /* versions, separated by ", "; may be NULL */
    GArray *bytes; /* of uint64_t, ascending */
    GArray *us;    /* of double: microseconds, same length */
    int algorithm; /* LhLinkAlgorithm that carried the bytes */
    LhMeasuredOn on;
    double bound_s_per_byte; /* lower bound from the links that it was measured on (measured.h) */
    double reached; /* fraction of that bound reached at the largest size, as of reading the file;
                       not affected by later changes of those links */
    LhEvidence from;
} LhCollectiveTimes;

/* base + hop h + w / bandwidth + m / copy: h hops, w bytes that a rank sends, m of them to one
 * peer. */
typedef struct {
    LhTime base_ps, hop_ps;
    double bandwidth, copy; /* nocheck:unit: bytes/s, named as in the file; 0: term absent */
} LhCollectiveLine;

/* A formula for one operation: three lines, named after NCCL's protocols, and the bytes that a rank
 * sends up to which the first and the second apply. */
typedef struct {
    int op; /* LhCollectiveKind */
    LhCollectiveLine ll, ll128, simple;
    uint64_t ll_bytes, ll128_bytes;
    LhMeasuredOn on;
    LhEvidence from;
} LhCollectiveLines;

/* Row @index; size @index of a row as printed; its microseconds. */
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

/* Whether the row was measured with that version of NCCL. */
bool lh_collective_times_has_version(const LhCollectiveTimes *row, const char *version);

extern const LhField lh_collective_times_fields[];
extern const LhField lh_collective_lines_fields[];

/* Checks rules that go beyond single fields; arrays may be NULL. @path is that of the array in the
 * file. @gpus: GPUs per node; @has_switch: they are connected by an NVSwitch. */
bool lh_collective_times_check(const LhJson *json, const char *path, const GArray *times,
                               uint64_t gpus, bool has_switch, GError **error);
bool lh_collective_lines_check(const LhJson *json, const char *path, const GArray *lines,
                               GError **error);

/* Fraction of protocol time that scales with links: of a time above that of the first size, the
 * part beyond the links' time at the efficiency of large sizes. NCCL's LL is bound by the GPU, its
 * other protocols by links, and the protocol of a time is unknown. */
#define LH_PROTOCOLS_ON_LINKS 0.5

/* Links relative to those that a row was measured on: factors on the time of bytes and on
 * latencies. Uncertain part (docs/reference/model.md, "Error bars and ties"): the fraction of
 * protocol time that scales with links, from 0 to 1; and which end of the error bar is requested, 1
 * for the longest time, -1 for the shortest, 0 for the time itself. */
typedef struct {
    double bytes, latency, protocols;
    int end;
} LhLinkSlowdown;

#define LH_LINK_AS_MEASURED ((LhLinkSlowdown){ 1, 1, LH_PROTOCOLS_ON_LINKS, 0 })
