/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a collective of one node takes by the measured times of the table: between their sizes,
 * between their numbers of ranks, and on other links than those that they were measured on.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"

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
 * size, half (docs/reference/model.md). @fewer and @more: the links beside those of each row.
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
