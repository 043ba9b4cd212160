/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a collective takes that NCCL runs as it likes: in one node as measured or by the lines of
 * the topology's file, else by NCCL's own model. Closed forms: they know nothing of other traffic.
 */
#pragma once

#include "sim/network/collectives/nccl_model.h"
#include "sim/network/link_bound.h"

/* What collectives among the GPUs of a node are off by whose size or number of GPUs nobody
 * measured: of those of docs/results/accuracy.md, each left out in turn, four in five are within
 * it. */
#define LH_COLLECTIVE_ERROR 0.2

/* The same of what NCCL's model says of a collective of so many bytes, as nccl-tests prints them:
 * the shorter, the less is known. Of those of two nodes in docs/results/accuracy.md. */
double lh_modelled_error(double bytes);

/* Where a time comes from. */
typedef enum {
    LH_TIMES_MEASURED, /* on links as these are, at sizes nearby */
    LH_TIMES_SCALED,   /* likewise, on other links */
    LH_TIMES_MODELLED, /* by formula */
} LhTimesSource;

/* "measured", "scaled", "modelled"; NULL-terminated. */
extern const char *const lh_times_source_names[];

/* One communicator's; borrows what it was made of. */
typedef struct _LhNcclMeasured LhNcclMeasured;

LhNcclMeasured *lh_nccl_measured_new(const LhNetwork *network, const LhDevice *device,
                                     const LhGroup *group);
void lh_nccl_measured_free(LhNcclMeasured *native);

/* Whether the topology has measured times for @kind on the ranks of the group, which are in one
 * node. */
bool lh_nccl_measured_is_measured(LhNcclMeasured *native, LhCollectiveKind kind);

/* Whether there is a time at all: of all-to-alls there may be none. */
bool lh_nccl_measured_is_known(LhNcclMeasured *native, LhCollectiveKind kind);

/*
 * Seconds of @shard_bytes per rank; of an all-to-all, what a rank sends, its own part included. The
 * kind must be known. Rows hold as far as links allow; no bytes are faster than these. Where the
 * links of the members are others than those that it was measured on (of an edited file, with a
 * fault, in a question of what if), what links and latencies took of a time changes along.
 * @provenance: of the times, lines or constants.
 */
double lh_nccl_measured_seconds(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes,
                                int *provenance);

/* The same, and in @floor_s what of it no byte takes. */
double lh_nccl_measured_parts(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes,
                              double *floor_s, int *provenance);

/* Where times of @kind come from, and how good they are: four measured ones in five are between
 * time / (1 + e) and time * (1 + e) for the error e of @shard_bytes. */
LhTimesSource lh_nccl_measured_source(LhNcclMeasured *native, LhCollectiveKind kind);
double lh_nccl_measured_error(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes);

/* What carries the bytes: that of the row that holds; of several nodes rings, of an all-to-all
 * pairs. */
LhLinkAlgorithm lh_nccl_measured_algorithm(LhNcclMeasured *native, LhCollectiveKind kind);
