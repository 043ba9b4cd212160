/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of collectives within one node from the measured times of the table: between sizes, between
 * numbers of ranks, and scaled to other links than those measured on.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"

/* The size of a collective as nccl-tests prints it, from @shard_bytes per rank. */
double lh_collective_printed_bytes(LhCollectiveKind kind, uint64_t ranks, double shard_bytes);

/* Moves rows of this version of NCCL to the front, so that they are used; false if there are
 * none. */
bool lh_collective_times_choose(GArray *times, const char *version);

/* The rows that apply to a kind on a number of GPUs: two, for a number without a row. */
typedef struct {
    const LhCollectiveTimes *fewer, *more; /* borrowed; may be the same */
    double share;                          /* weight of the second one, from 0 to 1 */
    double hop_s;                          /* time per hop, from rows of other numbers of GPUs */
    uint64_t ranks;
} LhCollectiveRows;

/*
 * False, with nothing set, if the rows (NULL: none) do not cover the number of ranks: it must have
 * a row or lie between two that have. Of several versions of NCCL the first row is used.
 */
bool lh_collective_times_find(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
                              LhCollectiveRows *rows);

/*
 * Seconds of @bytes, printed. Below the first size its time applies, beyond the last size the last
 * segment is extrapolated; in between, times follow the segments of neighbouring sizes. @fewer and
 * @more: the links relative to those of each row. Hops scale with latencies, and the time on links
 * with bytes; of the rest above the time of the first size, half scales with links
 * (docs/reference/model.md).
 */
double lh_collective_rows_seconds(const LhCollectiveRows *rows, double bytes, LhLinkSlowdown fewer,
                                  LhLinkSlowdown more);

/* The same; sets @floor_s to the part that does not depend on bytes: the time of the first size. */
double lh_collective_rows_parts(const LhCollectiveRows *rows, double bytes, LhLinkSlowdown fewer,
                                LhLinkSlowdown more, double *floor_s);

/* The LhLinkAlgorithm that carried the bytes. Between two rows that of the larger number, for which
 * reduction by the switch is more attractive. */
int lh_collective_rows_algorithm(const LhCollectiveRows *rows);

/* The weakest provenance of the rows. */
int lh_collective_rows_provenance(const LhCollectiveRows *rows);

/* The highest fraction of the links' bound that the row reached (more than 1 if it was faster than
 * the links), and its size there. */
double lh_collective_times_efficiency(const LhCollectiveTimes *row, uint64_t *bytes);

/* Fraction of the links' bound that the row reached at its largest size, at most 1, not counting
 * the time of the first size. */
double lh_collective_times_reached(const LhCollectiveTimes *row);

/* Microseconds of @bytes, as printed, interpolated as in lh_collective_rows_seconds(). */
double lh_collective_times_us(const LhCollectiveTimes *row, double bytes);

/* The size at which @ranks GPUs move as many bytes per rank as the row at @bytes. */
double lh_collective_times_same_of_a_rank(const LhCollectiveTimes *row, double bytes,
                                          uint64_t ranks);

/* Whether an all-reduce is faster at large sizes than rings can be on such links: then NVLS carried
 * it. */
bool lh_collective_times_is_faster(const LhCollectiveTimes *row);

/* lh_collective_times_find() and lh_collective_rows_seconds() on the links of the rows. */
bool lh_collective_times_seconds(const GArray *times, LhCollectiveKind kind, uint64_t ranks,
                                 double bytes, double *seconds, int *provenance);

/* Holdout: removes the time at @bytes of @kind on @ranks GPUs from its row, to predict it from the
 * others; false if there is none, or only two sizes are left. */
bool lh_collective_times_leave_out(GArray *times, LhCollectiveKind kind, uint64_t ranks,
                                   uint64_t bytes);
