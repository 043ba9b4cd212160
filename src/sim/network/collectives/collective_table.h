/*
 * What collectives of one node take, as measured: times at a few sizes, with lines in bytes
 * between them, and formulas for numbers of ranks that nobody measured. Sizes are those that
 * nccl-tests prints: of the whole vector for all-gather, reduce-scatter and all-reduce, and what
 * one rank sends in all, its own part included, for all-to-all and broadcast.
 */
#pragma once

#include "base/json/json.h"
#include "base/json/json_writer.h"
#include "program/op.h"
#include "sim/network/pcie.h"

#define LH_COLLECTIVE_PROTOCOLS 3

/* Beside collectives, what tables have times of: each GPU sends to the next one, and the last one
 * to the first, all at once, as sendrecv_perf of nccl-tests does. Sizes are those of a message. */
#define LH_TIMES_OF_SENDS LH_COLL_KINDS

/* Names of collectives, and "sendrecv"; NULL-terminated. */
extern const char *const lh_times_op_names[];

/* Limits of topology files. */
#define LH_TOPOLOGY_TEXT_MAX 1000
#define LH_BANDWIDTH_MIN 1.0
#define LH_BANDWIDTH_MAX 1e15
#define LH_LATENCY_MAX_S 1.0

/* A link of a node as it was where a collective was timed; bandwidth 0: not said, or there is none.
 */
typedef struct {
    double bandwidth; /* nocheck:unit: bytes/s, named as in the file */
    LhTime latency_ps;
} LhMeasuredLink;

/* A level of PCIe as it was there. */
typedef struct {
    char *name;
    double up; /* nocheck:unit: bytes/s, named as in the file; 0: never the limit */
    LhTime latency_ps;
} LhMeasuredLevel;

/* The links that a collective was timed on. */
typedef struct {
    LhMeasuredLink scale_up, pcie;
    GArray *levels;   /* of LhMeasuredLevel: those of "pcie" as a file has them; NULL: none */
    char *p2p;        /* likewise */
    LhPcieRates tree; /* goes with @pcie; levels and reach follow from what a file has */
} LhMeasuredOn;

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
    LhMeasuredOn on;
    int provenance; /* LhProvenance */
    char *source;
} LhCollectiveLines;

extern const LhField lh_measured_on_fields[]; /* of an LhMeasuredOn */
extern const LhField lh_collective_times_fields[];
extern const LhField lh_collective_lines_fields[];

/* Rules that fields do not say; arrays may be NULL. @path is that of the array in the file, of
 * nodes of @gpus GPUs; @has_switch: an NVSwitch joins them. */
bool lh_collective_times_check(const LhJson *json, const char *path, const GArray *times,
                               uint64_t gpus, bool has_switch, GError **error);
bool lh_collective_lines_check(const LhJson *json, const char *path, const GArray *lines,
                               GError **error);

/* What a row was measured on, as files have it: nothing, if nothing is said of it, or if it is what
 * the node's "measured_on" says (NULL: the node has none). */
void lh_measured_on_write(LhJsonWriter *w, const LhMeasuredOn *on, const LhMeasuredOn *of_node);

/* A row of times as files have them; @of_node likewise. */
void lh_collective_times_write(LhJsonWriter *w, const LhCollectiveTimes *row,
                               const LhMeasuredOn *of_node);

/* The size of a collective as nccl-tests would print it, of @shard_bytes per rank. */
double lh_collective_printed_bytes(LhCollectiveKind kind, uint64_t ranks, double shard_bytes);

/* From now on rows of this version of NCCL hold, where there are any; false if there are none. */
bool lh_collective_times_choose(GArray *times, const char *version);

/* The rows that tell of a kind on so many GPUs: two, for a number that no row has. */
typedef struct {
    const LhCollectiveTimes *fewer, *more; /* borrowed; may be the same */
    double share;                          /* of the second one: from 0 to 1 */
    double hop_s; /* what a hop adds, as rows of other numbers of GPUs tell */
    uint64_t ranks;
} LhCollectiveRows;

/* Of a time above that of the first size, beyond what links take at the efficiency of large sizes:
 * how much goes with links. NCCL's LL is bound by the GPU, its other protocols by links, and which
 * one ran cannot be told. */
#define LH_PROTOCOLS_ON_LINKS 0.5

/* How the links are beside those that a row was measured on: what bytes and latencies take now,
 * over what they took there. And what of it is not known (docs/model.md, "How far apart is apart"):
 * how much of what protocols take goes with links, from 0 to 1; and 1 or -1 for a time that is as
 * long or as short as it may be. */
typedef struct {
    double bytes, latency, protocols;
    int end;
} LhLinkSlowdown;

#define LH_LINK_AS_MEASURED ((LhLinkSlowdown){ 1, 1, LH_PROTOCOLS_ON_LINKS, 0 })

/*
 * False, and nothing set, if the rows (NULL: none) do not reach so far: a number of ranks that no
 * row has must lie between two that rows have. Of several versions of NCCL the first row holds.
 */
bool lh_collective_times_find(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
                              LhCollectiveRows *rows);

/*
 * Seconds of @bytes, printed. Below the first size its time holds, beyond the last one the last
 * piece goes on; in between times rise and fall as those of the sizes next to them do. Of a time,
 * hops go with latencies; what links took, with bytes; of the rest above the time of the first
 * size, half (docs/model.md). @fewer and @more: the links beside those of each row.
 */
double lh_collective_rows_seconds(const LhCollectiveRows *rows, double bytes, LhLinkSlowdown fewer,
                                  LhLinkSlowdown more);

/* The same, and in @floor_s what of it no byte takes: the time of the first size. */
double lh_collective_rows_parts(const LhCollectiveRows *rows, double bytes, LhLinkSlowdown fewer,
                                LhLinkSlowdown more, double *floor_s);

/* What carried the bytes, an LhLinkAlgorithm: of a number between two rows as of the larger one,
 * which had more reason to let the switch sum. */
int lh_collective_rows_algorithm(const LhCollectiveRows *rows);

/* The weakest provenance of the rows. */
int lh_collective_rows_provenance(const LhCollectiveRows *rows);

/* Of what links allow, the share that the row reached where it reached most: more than 1 if it was
 * faster than they are; and its size there. */
double lh_collective_times_efficiency(const LhCollectiveTimes *row, uint64_t *bytes);

/* Of what links allow, the share that the row reached at its largest size, at most 1: of its time,
 * without that of the first size. */
double lh_collective_times_reached(const LhCollectiveTimes *row);

/* Microseconds of @bytes, printed, as lh_collective_rows_seconds() has it. */
double lh_collective_times_us(const LhCollectiveTimes *row, double bytes);

/* The size at which as many bytes of a rank are moved on @ranks GPUs as @bytes of the row are. */
double lh_collective_times_same_of_a_rank(const LhCollectiveTimes *row, double bytes,
                                          uint64_t ranks);

/* Whether an all-reduce went faster in the end than rings of such links go: then it was NVLS. */
bool lh_collective_times_is_faster(const LhCollectiveTimes *row);

/* lh_collective_times_find() and lh_collective_rows_seconds() on the links of the rows. */
bool lh_collective_times_seconds(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
                                 double bytes, double *seconds, int *provenance);

/* Takes the time at @bytes of @kind on @ranks GPUs out of its row, to see what the others say of
 * this size; false if there is none, or only two sizes are there. */
bool lh_collective_times_leave_out(GArray *times, LhCollectiveKind kind, uint64_t ranks,
                                   uint64_t bytes);

/* The row for @kind; NULL if there is none. */
const LhCollectiveLines *lh_collective_lines_find(const GArray *lines, LhCollectiveKind kind);

/* Seconds by formula, for any number of ranks from two on. Copies and short messages go with no
 * link. */
double lh_collective_lines_seconds(const LhCollectiveLines *row, uint64_t ranks, double bytes,
                                   LhLinkSlowdown slowdown);

/* The same, and in @floor_s what of it no byte takes: base and hops. */
double lh_collective_lines_parts(const LhCollectiveLines *row, uint64_t ranks, double bytes,
                                 LhLinkSlowdown slowdown, double *floor_s);
