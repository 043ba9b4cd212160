/*
 * One operation of NCCL alone, as the programs of nccl-tests time it: what it takes on a cluster by
 * size, how good that is, and what its links would allow. Times are those that a run of a program
 * with this operation and nothing else has.
 */
#pragma once

#include "scenario/setup.h"
#include "sim/network/collectives/nccl_measured.h"
#include "sim/network/levers.h"

#define LH_SINGLE_BYTES_MAX (UINT64_C(1) << 50)
#define LH_SINGLE_MEMBERS_MAX 8192

#define LH_SINGLE_SENDS LH_COLL_KINDS

/* An operation, under the name that nccl-tests has for it. */
typedef struct {
    const char *name;     /* "all_reduce" */
    const char *own;      /* longhaul's: "all-reduce"; NULL: it is no collective */
    const char *summary;  /* one line */
    int kind;             /* LhCollectiveKind, or LH_SINGLE_SENDS: each rank to the next one */
    uint64_t grain_bytes; /* sizes are multiples of so many for each rank, others are rounded down;
                             0: of any */
} LhSingleOp;

/* Ended by an entry without a name. */
extern const LhSingleOp lh_single_ops[];

/* By either name, perhaps with "_perf"; LH_ERROR_USAGE with the nearest one. */
const LhSingleOp *lh_single_op_find(const char *name, GError **error);

/* busbw over algbw, on so many ranks: nccl-tests' doc/PERFORMANCE.md. */
double lh_single_bus_share(const LhSingleOp *op, uint64_t ranks);

/* The size that is run where @bytes are asked for; 0: there is none. */
uint64_t lh_single_bytes(const LhSingleOp *op, uint64_t ranks, uint64_t bytes);

/* Ranks on the first GPUs of the first nodes. */
typedef struct {
    uint64_t ranks;    /* 0: as many as there are GPUs */
    uint64_t per_node; /* 0: nodes are filled one after the other */
    uint64_t per_host; /* likewise hosts, of which a node may have several */
} LhSinglePlace;

/* An operation on a cluster. */
typedef struct {
    const LhSingleOp *op;
    LhSetup *setup; /* the cluster; owned */
    LhGroup group;
    uint64_t ranks, nodes; /* of the group, and how many these are on */
} LhSingle;

/* @scenario must outlive it, and says which cluster, and how collectives run. LH_ERROR_INPUT if the
 * ranks do not fit. Caller frees. */
LhSingle *lh_single_new(const LhScenario *scenario, const LhSingleOp *op, LhSinglePlace place,
                        GError **error);
void lh_single_free(LhSingle *single);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSingle, lh_single_free)

typedef struct {
    double seconds, error; /* four measured ones in five are within seconds / and x (1 + error) */
    LhTimesSource source;
} LhSingleTime;

/* What @bytes take on the cluster; and on one with links like those of @network. */
bool lh_single_time(const LhSingle *single, uint64_t bytes, LhSingleTime *time, GError **error);
bool lh_single_seconds(const LhSingle *single, const LhNetwork *network, uint64_t bytes,
                       double *seconds, GError **error);

/* Of LhLinkLoad, the largest first (link_bound.h). Caller unrefs. */
GArray *lh_single_loads(const LhSingle *single);

/* Whether an NVSwitch adds up, which it does of an all-reduce that was measured so. */
bool lh_single_is_nvls(const LhSingle *single);
