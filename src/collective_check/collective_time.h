/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single NCCL operation, as the programs of nccl-tests time it: its time on a cluster by size,
 * the error bar, and the lower bound of the links. Times are those of simulating a program with
 * this operation only.
 */
#pragma once

#include "scenario/setup.h"
#include "sim/network/collectives/nccl_measured.h"
#include "sim/network/levers.h"

#define LH_NCCL_TEST_BYTES_MAX (UINT64_C(1) << 50)
#define LH_NCCL_TEST_MEMBERS_MAX 8192

#define LH_NCCL_TEST_SENDS LH_COLL_KINDS

/* An operation of nccl-tests. */
typedef struct {
    const char *name;    /* nccl-tests' name: "all_reduce" */
    const char *own;     /* longhaul's name: "all-reduce"; NULL: not a collective */
    const char *summary; /* one line */
    int kind;            /* LhCollectiveKind, or LH_NCCL_TEST_SENDS: each rank to the next */
    uint64_t
        grain_bytes; /* sizes are rounded down to a multiple of this for each rank; 0: any size */
} LhNcclTestOp;

/* Terminated by an entry without a name. */
extern const LhNcclTestOp lh_nccl_test_ops[];

/* Their names, in this order; NULL-terminated. */
extern const char *const lh_nccl_test_op_names[];

/* By either name, perhaps with "_perf"; LH_ERROR_USAGE with the nearest one. */
const LhNcclTestOp *lh_nccl_test_op_find(const char *name, GError **error);

/* busbw / algbw on @ranks ranks: nccl-tests' doc/PERFORMANCE.md. */
double lh_nccl_test_bus_share(const LhNcclTestOp *op, uint64_t ranks);

/* The size that nccl-tests runs if @bytes are requested; 0: none. */
uint64_t lh_nccl_test_bytes(const LhNcclTestOp *op, uint64_t ranks, uint64_t bytes);

/* Placement: ranks on the first GPUs of the first nodes. */
typedef struct {
    uint64_t ranks;    /* 0: one per GPU */
    uint64_t per_node; /* 0: nodes are filled one after another */
    uint64_t per_host; /* likewise for hosts, of which a node may have several */
} LhNcclTestPlace;

/* An operation on a cluster. */
typedef struct {
    const LhNcclTestOp *op;
    LhSetup *setup; /* the cluster; owned */
    LhGroup group;
    uint64_t ranks, nodes; /* of the group; number of nodes that they are on */
} LhNcclTest;

/* @scenario must outlive the result; it gives the cluster and the model of collectives.
 * LH_ERROR_INPUT if the ranks do not fit. Caller frees. */
LhNcclTest *lh_nccl_test_new(const LhScenario *scenario, const LhNcclTestOp *op,
                             LhNcclTestPlace place, GError **error);
void lh_nccl_test_free(LhNcclTest *single);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhNcclTest, lh_nccl_test_free)

typedef struct {
    double seconds,
        error; /* error bar: four in five measured times are within seconds / and x (1 + error) */
    LhTimesSource source;
} LhNcclTestTime;

/* Predicts the time of @bytes on the cluster; the second function on @network's links instead. */
bool lh_nccl_test_time(const LhNcclTest *single, uint64_t bytes, LhNcclTestTime *time,
                       GError **error);
bool lh_nccl_test_seconds(const LhNcclTest *single, const LhNetwork *network, uint64_t bytes,
                          double *seconds, GError **error);

/* The load of each link: of LhLinkLoad, the largest first (link_bound.h). Caller unrefs. */
GArray *lh_nccl_test_loads(const LhNcclTest *single);

/* Whether an NVSwitch reduces (NVLS), as in an all-reduce that was measured so. */
bool lh_nccl_test_is_nvls(const LhNcclTest *single);
