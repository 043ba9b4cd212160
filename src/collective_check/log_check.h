/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operations of NCCL take on a cluster, and logs of nccl-tests held against it: which rows are
 * slower or faster than their bars allow, and what would explain them.
 */
#pragma once

#include "collective_check/collective_time.h"
#include "import/cluster/nccl_tests.h"

/* A size, predicted, and as a log has it. */
typedef struct {
    uint64_t bytes;
    LhNcclTestTime time;
    double log_s; /* 0: there is no log */
    guint line;   /* of the log */
} LhLogCheckRow;

typedef struct {
    LhScenario *scenario; /* owned: its cluster has the nodes of the log */
    LhNcclTest *single;   /* owned */
    LhNcclLog *log;       /* owned; NULL: none */
    GArray *rows;         /* of LhLogCheckRow, by size */
    GArray *loads;        /* of LhLinkLoad, the largest first */
} LhLogCheckRun;

/* One thing that is other than predicted. */
typedef struct {
    const LhLever *lever; /* NULL: it is a way */
    const char *way;      /* "NCCL_NVLS_ENABLE=0"; NULL: it is a lever ... */
    double factor;        /* ... that gives so much of what the file says */
    guint inside;         /* so many rows are within their bars then */
    double off;           /* root of the mean square of how many bars rows are off then */
} LhLogCheckCause;

typedef struct {
    GPtrArray *runs;      /* of LhLogCheckRun */
    guint logged, inside; /* rows that logs have; those of them within their bars */
    GArray *causes; /* of LhLogCheckCause: those that explain the rest, each alone, equally well */
} LhLogCheck;

typedef struct {
    const LhScenario *scenario; /* says which cluster */
    const LhNcclTestOp *op;     /* NULL: that of each log */
    const GPtrArray *logs;      /* of char *: files; NULL: none */
    uint64_t bytes_min, bytes_max;
    uint64_t factor;       /* between sizes; 0: those of the logs */
    LhNcclTestPlace place; /* 0: that of each log */
} LhLogCheckQuery;

/* LH_ERROR_INPUT if a log is of another operation or of other ranks, or has no row of such a size.
 * Caller frees. */
LhLogCheck *lh_log_check_new(const LhLogCheckQuery *query, GError **error);
void lh_log_check_free(LhLogCheck *held);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhLogCheck, lh_log_check_free)

/* How many bars the log's time is off, by the logarithms of both: within it from -1 (fast) to 1
 * (slow). */
double lh_log_check_bars(const LhLogCheckRow *row, double predicted_s);
