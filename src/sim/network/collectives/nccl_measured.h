/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of collectives as NCCL would run them: within one node from measured times or lines of the
 * topology file, else by NCCL's own model. Closed forms: other traffic is ignored.
 */
#pragma once

#include "sim/network/collectives/nccl_model.h"
#include "sim/network/link_bound.h"

/* Relative error of times of collectives within a node at sizes or numbers of GPUs that were not
 * measured: four in five of those of docs/results/accuracy.md, each left out in turn, are within
 * it. */
#define LH_COLLECTIVE_ERROR 0.2

/* The same for NCCL's model, by bytes as printed by nccl-tests: short collectives are less certain.
 * From the collectives of two nodes in docs/results/accuracy.md. */
double lh_modelled_error(double bytes);

/* Source of a time. */
typedef enum {
    LH_TIMES_MEASURED, /* on the same links, at sizes nearby */
    LH_TIMES_SCALED,   /* measured on other links, scaled */
    LH_TIMES_MODELLED, /* by formula */
} LhTimesSource;

/* "measured", "scaled", "modelled"; NULL-terminated. */
extern const char *const lh_times_source_names[];

/* Times of one communicator; borrows what it was made from. */
typedef struct _LhNcclMeasured LhNcclMeasured;

LhNcclMeasured *lh_nccl_measured_new(const LhNetwork *network, const LhDevice *device,
                                     const LhGroup *group);
void lh_nccl_measured_free(LhNcclMeasured *native);

/* Whether the topology has measured times for @kind on the ranks of the group, which must be in one
 * node. */
bool lh_nccl_measured_is_measured(LhNcclMeasured *native, LhCollectiveKind kind);

/* Whether any time is known; it may not be for all-to-alls. */
bool lh_nccl_measured_is_known(LhNcclMeasured *native, LhCollectiveKind kind);

/*
 * Seconds of @shard_bytes per rank; for an all-to-all, the bytes that a rank sends, including its
 * own part. The time of the kind must be known. It is at least the lower bound of the links. If the
 * links of the members differ from those measured on (edited file, fault, what-if), the parts of
 * the time due to links and latencies scale with them. Sets @provenance to that of the times, lines
 * or constants.
 */
double lh_nccl_measured_seconds(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes,
                                int *provenance);

/* The same; sets @floor_s to the part that does not depend on bytes. */
double lh_nccl_measured_parts(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes,
                              double *floor_s, int *provenance);

/* The source of the times of @kind, and their relative error e at @shard_bytes: four in five
 * measured times are between time / (1 + e) and time * (1 + e). */
LhTimesSource lh_nccl_measured_source(LhNcclMeasured *native, LhCollectiveKind kind);
double lh_nccl_measured_error(LhNcclMeasured *native, LhCollectiveKind kind, double shard_bytes);

/* The algorithm that carries the bytes: that of the row in use; rings across nodes; pairs for an
 * all-to-all. */
LhLinkAlgorithm lh_nccl_measured_algorithm(LhNcclMeasured *native, LhCollectiveKind kind);
