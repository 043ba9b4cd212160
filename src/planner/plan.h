/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a question to a purchase: how to train a model best on one cluster or on each of several,
 * the longest sequence that a cluster can train, and the smallest cluster for a sequence.
 */
#pragma once

#include "compare/bottleneck.h"
#include "compare/error_bar.h"
#include "compare/memory_relief.h"
#include "planner/baseline_config.h"
#include "planner/capacity.h"
#include "planner/search.h"

#define LH_POINTS_SCHEMA "longhaul.points/1"

typedef struct _LhPlanAnswer LhPlanAnswer;

/* What is asked. */
typedef struct {
    const LhScenario *scenario; /* model, sequence, and whatever of the step is fixed */
    const GPtrArray *clusters;  /* of char *: "NAME" or "NAME:NODES"; NULL: the scenario's */
    uint64_t sequences;         /* of a step: the global batch; at least 1 */
    bool longest;               /* with the longest sequence that fits, on one cluster */
    bool smallest;              /* on the fewest GPUs of each cluster with which it fits */
    const LhConfig *config;     /* that the scenario is made of; NULL: none */
    guint top;                  /* how many of the fastest are wanted, at least 1 */
    bool front;                 /* also those that need less memory */
    /* As of LhPlanSearchOptions; beside searches, where `more` is NULL, several threads may ask at
     * once. */
    LhTask task;
    const char *points_file;  /* remembers what was found, to go on from; NULL: none */
    const LhControl *control; /* by which several processes answer it together, each of them here;
                                 NULL: this one alone */
    int64_t deadline_us;      /* for them to wait for each other */
    /* Called for each cluster in their order, when nothing is going to change about it, with the
     * answer so far; of several processes, in the first one. NULL: none. */
    void (*finished)(void *data, const LhPlanAnswer *answer, guint index);
    void *finished_data;
} LhPlanQuery;

/* The answer for one cluster. */
typedef struct {
    LhPlanSpace *space;
    LhPlanSearch *search;    /* NULL: interrupted before */
    guint sizes_tried;       /* `smallest`: that are too small */
    GPtrArray *ways;         /* of LhPlanWay *: the fastest ones, at most as many as are wanted */
    LhBottleneck *bound;     /* what binds the fastest; NULL: not known */
    LhReliefs *reliefs;      /* where nothing fits: what would help; NULL: it is not known */
    guint relieved;          /* of which point */
    LhBaselineConfig *start; /* how the configuration says to train; NULL: there is none */
    bool interrupted;        /* there may be ways, or faster ones, that were not looked at */
} LhPlanCluster;

/* A point that ran, in numbers. */
typedef struct {
    guint point;
    double iteration_s, tokens_per_s, mfu;
    uint64_t peak_bytes, limit_bytes; /* 0: no limit */
    LhTimeError time_error;           /* 0 where constants are no machine's */
    double error; /* what its difference to the fastest is good to; 0 for that one */
    bool tied;    /* and that is more than the difference */
} LhPlanWay;

struct _LhPlanAnswer {
    GPtrArray *clusters; /* of LhPlanCluster *, in the order of the question */
    guint best;          /* that with the fastest way; G_MAXUINT: none has any */
    LhPlanLongest longest;
    char *query_sha256; /* of the question and its inputs */
    bool first;         /* of several processes: the one that has the points file, and `bound` */
    bool interrupted;
};

/* NULL for what cannot be asked or done, and, LH_ERROR_INTERRUPTED, if it was interrupted before
 * there was a space to search; nothing that fits is an answer. Caller frees. */
LhPlanAnswer *lh_plan(const LhPlanQuery *query, GError **error);
void lh_plan_answer_free(LhPlanAnswer *answer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPlanAnswer, lh_plan_answer_free)

/* What @index, which ran, comes to. */
LhPlanWay lh_plan_way(const LhPlanSearch *search, guint index);

/* The fastest way of a cluster, or NULL. */
const LhPlanWay *lh_plan_best_way(const LhPlanCluster *cluster);

/* Refusals of one kind: the same sentence but for its numbers. */
typedef struct {
    char *reason; /* owned: of the first of them */
    guint points;
} LhPlanFamily;

/* Those of a search, the largest first: of LhPlanFamily *; caller unrefs. */
GPtrArray *lh_plan_refusals(const LhPlanSearch *search);
