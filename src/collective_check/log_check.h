/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicted times of NCCL operations on a cluster, compared with logs of nccl-tests: rows outside
 * their error bars, and causes that would explain them.
 */
#pragma once

#include "collective_check/collective_time.h"
#include "import/cluster/nccl_tests.h"

/* A size, with its predicted and its logged time. */
typedef struct {
    uint64_t bytes;
    LhNcclTestTime time;
    double log_s; /* 0: no log */
    guint line;   /* in the log */
} LhLogCheckRow;

typedef struct {
    LhScenario *scenario; /* owned: its cluster has the log's number of nodes */
    LhNcclTest *single;   /* owned */
    LhNcclLog *log;       /* owned; NULL: none */
    GArray *rows;         /* of LhLogCheckRow, by size */
    GArray *loads;        /* of LhLinkLoad, the largest first */
} LhLogCheckRun;

/* A possible cause: one deviation from the prediction. */
typedef struct {
    const LhLever *lever; /* NULL: `way` is set */
    const char *way;      /* setting of NCCL, "NCCL_NVLS_ENABLE=0"; NULL: `lever` is set ... */
    double factor;        /* ... at this multiple of the file's speed */
    guint inside;         /* number of rows that are within their error bars then */
    double off;           /* root mean square error of rows then, in error bars */
} LhLogCheckCause;

typedef struct {
    GPtrArray *runs;      /* of LhLogCheckRun */
    guint logged, inside; /* rows with a log; those of them within their error bars */
    GArray *causes;       /* of LhLogCheckCause: each explains the rest alone, all equally well */
} LhLogCheck;

typedef struct {
    const LhScenario *scenario; /* gives the cluster */
    const LhNcclTestOp *op;     /* NULL: that of each log */
    const GPtrArray *logs;      /* of char *: files; NULL: none */
    uint64_t bytes_min, bytes_max;
    uint64_t factor;       /* between sizes; 0: sizes of the logs */
    LhNcclTestPlace place; /* 0: that of each log */
} LhLogCheckQuery;

/* LH_ERROR_INPUT if a log has another operation or other ranks, or no row of such a size. Caller
 * frees. */
LhLogCheck *lh_log_check_new(const LhLogCheckQuery *query, GError **error);
void lh_log_check_free(LhLogCheck *held);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhLogCheck, lh_log_check_free)

/* The logged time's deviation from @predicted_s in error bars, by logarithms: within the error bar
 * from -1 (fast) to 1 (slow). */
double lh_log_check_bars(const LhLogCheckRow *row, double predicted_s);
