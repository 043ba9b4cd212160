/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps: all combinations of the values that a scenario lists for some of its fields. Each is a
 * point, whose schedules are compared by lh_compare().
 */
#pragma once

#include "compare/compare.h"

#define LH_SWEEP_LINES_SCHEMA "longhaul.sweep-points/1"
#define LH_SWEEP_POINTS_MAX 4096

/* A comparison as text: rows of cells, with the same columns for all points. */
typedef struct {
    char **(*columns)(const LhSetup *setup); /* column keys; caller frees */
    /* Of GStrv, one per row of the comparison, in its order; caller unrefs. */
    GPtrArray *(*rows)(const LhSetup *setup, const LhComparison *comparison);
} LhSweepCells;

/* Input of a sweep. */
typedef struct {
    const LhScenario *scenario; /* with lists of values for some fields */
    const LhSweepCells *cells;  /* the columns include "state" and "reason" */
    /* Jobs: points in parallel; 0: limited by cores and memory. Progress counts finished points. */
    LhTask task;
    LhTime max_work_ps;      /* as for lh_run_time_check() */
    const char *points_file; /* file that caches results and resumes from them; NULL: none */
    /* Number of shards, each with its own points file (lh_sweep_shard_file()); @shards 0: no
     * shards. @shard from 1: run only that shard's points; 0: merge the shards' files and run what
     * is missing. */
    guint shard, shards;
} LhSweepQuery;

/* One combination of values. */
typedef struct {
    char **values;   /* of the axes, in order */
    GPtrArray *rows; /* of GStrv: one per schedule; a single one if the case is refused; NULL:
                        interrupted before */
} LhSweepPoint;

typedef struct {
    GPtrArray *axes; /* of LhScenarioAxis *, the scenario's, in the order of its fields */
    char **columns;
    GPtrArray *points;  /* of LhSweepPoint *: the last axis varies fastest */
    guint refused;      /* points without any schedule tried */
    char *query_sha256; /* of the query and its inputs */
    LhSetup *setup;     /* of the first point that is not refused */
    LhScenario *first;  /* scenario of that point */
    GPtrArray *lost;    /* of char *: results missing in shard files, a sentence each */
    guint in_shard;     /* points of the shard, or all */
    bool interrupted;
} LhSweep;

/* Runs a sweep. NULL for an invalid query or a failure; refused points are part of the result,
 * unless all are refused. Caller frees. The result borrows the query's scenario. */
LhSweep *lh_sweep(const LhSweepQuery *query, GError **error);
void lh_sweep_free(LhSweep *sweep);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSweep, lh_sweep_free)

/* Index of the column @key, which must exist. */
guint lh_sweep_column(const LhSweep *sweep, const char *key);
