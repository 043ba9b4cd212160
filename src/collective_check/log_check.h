/*
 * What operations of NCCL take on a cluster, and logs of nccl-tests held against it: which rows are
 * slower or faster than their bars allow, and what would explain them.
 */
#pragma once

#include "collective_check/collective_time.h"
#include "import/cluster/nccl_log.h"

/* A size, predicted, and as a log has it. */
typedef struct {
    uint64_t bytes;
    LhSingleTime time;
    double log_s; /* 0: there is no log */
    guint line;   /* of the log */
} LhHeldRow;

typedef struct {
    LhScenario *scenario; /* owned: its cluster has the nodes of the log */
    LhSingle *single;     /* owned */
    LhNcclLog *log;       /* owned; NULL: none */
    GArray *rows;         /* of LhHeldRow, by size */
    GArray *loads;        /* of LhLinkLoad, the largest first */
} LhHeldRun;

/* One thing that is other than predicted. */
typedef struct {
    const LhLever *lever; /* NULL: it is a way */
    const char *way;      /* "NCCL_NVLS_ENABLE=0"; NULL: it is a lever ... */
    double factor;        /* ... that gives so much of what the file says */
    guint inside;         /* so many rows are within their bars then */
    double off;           /* root of the mean square of how many bars rows are off then */
} LhHeldCause;

typedef struct {
    GPtrArray *runs;      /* of LhHeldRun */
    guint logged, inside; /* rows that logs have; those of them within their bars */
    GArray *causes; /* of LhHeldCause: those that explain the rest, each alone, equally well */
} LhHeld;

typedef struct {
    const LhScenario *scenario; /* says which cluster */
    const LhSingleOp *op;       /* NULL: that of each log */
    const GPtrArray *logs;      /* of char *: files; NULL: none */
    uint64_t bytes_min, bytes_max;
    uint64_t factor;     /* between sizes; 0: those of the logs */
    LhSinglePlace place; /* 0: that of each log */
} LhHeldQuery;

/* LH_ERROR_INPUT if a log is of another operation or of other ranks, or has no row of such a size.
 * Caller frees. */
LhHeld *lh_held_new(const LhHeldQuery *query, GError **error);
void lh_held_free(LhHeld *held);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhHeld, lh_held_free)

/* How many bars the log's time is off, by the logarithms of both: within it from -1 (fast) to 1
 * (slow). */
double lh_held_bars(const LhHeldRow *row, double predicted_s);

/* Finds causes; part of lh_held_new(). */
void lh_held_explain(LhHeld *held);
