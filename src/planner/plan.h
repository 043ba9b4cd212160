/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning: the best way to train a model on one or several clusters, the longest sequence that a
 * cluster can train, and the smallest cluster for a sequence.
 */
#pragma once

#include "compare/bottleneck.h"
#include "compare/error_bar.h"
#include "compare/memory_relief.h"
#include "planner/baseline_config.h"
#include "planner/capacity.h"
#include "planner/fit/fit.h"
#include "planner/search.h"

#define LH_POINTS_SCHEMA "longhaul.points/1"

typedef struct _LhPlanAnswer LhPlanAnswer;

/* A planning query. */
typedef struct {
    const LhScenario *scenario; /* model, sequence, and fixed parts of the step */
    const GPtrArray *clusters;  /* of char *: "NAME" or "NAME:NODES"; NULL: the scenario's */
    uint64_t sequences;         /* of a step (the global batch); at least 1 */
    bool remedies;              /* points that do not fit may turn on what their framework has */
    bool fit;                   /* say for each cluster what has to be turned on */
    bool longest;               /* use the longest sequence that fits, on one cluster */
    bool smallest;              /* use the fewest GPUs of each cluster on which the step fits */
    const LhConfig *config;     /* configuration that the scenario is made from; NULL: none */
    guint top;                  /* number of fastest points wanted, at least 1 */
    bool front;                 /* also the Pareto front of time and memory */
    /* As in LhPlanSearchOptions. Outside searches, where `more` is NULL, several threads may report
     * at once. */
    LhTask task;
    const char *points_file; /* log of results to resume from; NULL: none */
    /* For several processes that answer together, each of which calls this; NULL: a single
     * process. */
    const LhControl *control;
    int64_t deadline_us; /* for processes to wait for each other */
    /* Called for each cluster in order, once its part of the answer is final, with the answer so
     * far. With several processes, only in the first. NULL: none. */
    void (*finished)(void *data, const LhPlanAnswer *answer, guint index);
    void *finished_data;
} LhPlanQuery;

/* The answer for one cluster. */
typedef struct {
    LhPlanSpace *space;
    LhPlanSearch *search;    /* NULL: interrupted before */
    guint sizes_tried;       /* `smallest`: sizes that are too small */
    GPtrArray *ways;         /* of LhPlanWay *: the fastest ones, at most `top` */
    LhBottleneck *bound;     /* bottleneck of the fastest; NULL: unknown */
    LhReliefs *reliefs;      /* what would help where nothing fits; NULL: unknown */
    guint relieved;          /* point that `reliefs` are for */
    LhPlanFit *fit;          /* if requested, or if nothing fits as it is; NULL: none */
    LhBaselineConfig *start; /* the configuration's own way of training; NULL: none */
    bool interrupted;        /* there may be other or faster points that were not evaluated */
} LhPlanCluster;

/* Metrics of a simulated point. */
typedef struct {
    guint point;
    double iteration_s, tokens_per_s, mfu;
    uint64_t peak_bytes, limit_bytes; /* 0: no limit */
    LhTimeError time_error;           /* 0 where the constants belong to no machine */
    double error; /* error bar of its difference to the fastest; 0 for the fastest */
    bool tied;    /* the difference is within `error` */
} LhPlanWay;

struct _LhPlanAnswer {
    GPtrArray *clusters; /* of LhPlanCluster *, in the order of the query */
    guint best;          /* the cluster with the fastest point; G_MAXUINT: none */
    LhPlanLongest longest;
    char *query_sha256; /* of the query and its inputs */
    bool first;         /* this is the first process: it has the points file and computes `bound` */
    bool interrupted;
};

/* Answers a query. NULL if it is invalid, cannot be run, or (LH_ERROR_INTERRUPTED) was interrupted
 * before there was a space to search. If nothing fits, that is an answer. Caller frees. */
LhPlanAnswer *lh_plan(const LhPlanQuery *query, GError **error);
void lh_plan_answer_free(LhPlanAnswer *answer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPlanAnswer, lh_plan_answer_free)

/* Metrics of point @index, which was simulated. */
LhPlanWay lh_plan_way(const LhPlanSearch *search, guint index);

/* The fastest point of a cluster, or NULL. */
const LhPlanWay *lh_plan_best_way(const LhPlanCluster *cluster);

/* Rejections with the same reason, apart from numbers. */
typedef struct {
    char *reason; /* owned: of the first one */
    guint points;
} LhPlanFamily;

/* Rejections of a search by reason, most frequent first: of LhPlanFamily *; caller unrefs. */
GPtrArray *lh_plan_refusals(const LhPlanSearch *search);
