/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation of NCCL alone, as the programs of nccl-tests time it: what it takes on a cluster by
 * size, how good that is, and what its links would allow. Times are those that a run of a program
 * with this operation and nothing else has.
 */
#pragma once

#include "scenario/setup.h"
#include "sim/network/collectives/nccl_measured.h"
#include "sim/network/levers.h"

#define LH_NCCL_TEST_BYTES_MAX (UINT64_C(1) << 50)
#define LH_NCCL_TEST_MEMBERS_MAX 8192

#define LH_NCCL_TEST_SENDS LH_COLL_KINDS

/* An operation, under the name that nccl-tests has for it. */
typedef struct {
    const char *name;     /* "all_reduce" */
    const char *own;      /* longhaul's: "all-reduce"; NULL: it is no collective */
    const char *summary;  /* one line */
    int kind;             /* LhCollectiveKind, or LH_NCCL_TEST_SENDS: each rank to the next one */
    uint64_t grain_bytes; /* sizes are multiples of so many for each rank, others are rounded down;
                             0: of any */
} LhNcclTestOp;

/* Ended by an entry without a name. */
extern const LhNcclTestOp lh_nccl_test_ops[];

/* Their names, in this order; NULL-terminated. */
extern const char *const lh_nccl_test_op_names[];

/* By either name, perhaps with "_perf"; LH_ERROR_USAGE with the nearest one. */
const LhNcclTestOp *lh_nccl_test_op_find(const char *name, GError **error);

/* busbw over algbw, on so many ranks: nccl-tests' doc/PERFORMANCE.md. */
double lh_nccl_test_bus_share(const LhNcclTestOp *op, uint64_t ranks);

/* The size that is run where @bytes are asked for; 0: there is none. */
uint64_t lh_nccl_test_bytes(const LhNcclTestOp *op, uint64_t ranks, uint64_t bytes);

/* Ranks on the first GPUs of the first nodes. */
typedef struct {
    uint64_t ranks;    /* 0: as many as there are GPUs */
    uint64_t per_node; /* 0: nodes are filled one after the other */
    uint64_t per_host; /* likewise hosts, of which a node may have several */
} LhNcclTestPlace;

/* An operation on a cluster. */
typedef struct {
    const LhNcclTestOp *op;
    LhSetup *setup; /* the cluster; owned */
    LhGroup group;
    uint64_t ranks, nodes; /* of the group, and how many these are on */
} LhNcclTest;

/* @scenario must outlive it, and says which cluster, and how collectives run. LH_ERROR_INPUT if the
 * ranks do not fit. Caller frees. */
LhNcclTest *lh_nccl_test_new(const LhScenario *scenario, const LhNcclTestOp *op,
                             LhNcclTestPlace place, GError **error);
void lh_nccl_test_free(LhNcclTest *single);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhNcclTest, lh_nccl_test_free)

typedef struct {
    double seconds, error; /* four measured ones in five are within seconds / and x (1 + error) */
    LhTimesSource source;
} LhNcclTestTime;

/* What @bytes take on the cluster; and on one with links like those of @network. */
bool lh_nccl_test_time(const LhNcclTest *single, uint64_t bytes, LhNcclTestTime *time,
                       GError **error);
bool lh_nccl_test_seconds(const LhNcclTest *single, const LhNetwork *network, uint64_t bytes,
                          double *seconds, GError **error);

/* Of LhLinkLoad, the largest first (link_bound.h). Caller unrefs. */
GArray *lh_nccl_test_loads(const LhNcclTest *single);

/* Whether an NVSwitch adds up, which it does of an all-reduce that was measured so. */
bool lh_nccl_test_is_nvls(const LhNcclTest *single);
