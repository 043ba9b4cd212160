/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps: all combinations of the values that a scenario lists for some of its fields. Each is a
 * point, whose schedules are compared as lh_compare() does it.
 */
#pragma once

#include "compare/compare.h"

#define LH_SWEEP_LINES_SCHEMA "longhaul.sweep-points/1"
#define LH_SWEEP_POINTS_MAX 4096

/* What reports say of a comparison, as texts: rows of cells, in the same columns for all points. */
typedef struct {
    char **(*columns)(const LhSetup *setup); /* their keys; caller frees */
    /* Of GStrv, one row for each of the comparison, in its order; caller unrefs. */
    GPtrArray *(*rows)(const LhSetup *setup, const LhComparison *comparison);
} LhSweepCells;

/* What is asked. */
typedef struct {
    const LhScenario *scenario; /* with a list of values for some fields */
    const LhSweepCells *cells;  /* their columns have "state" and "reason" */
    /* Jobs: points at once; 0: as the cores and the memory allow. Told of the points that are done
     * of all. */
    LhTask task;
    LhTime max_work_ps;      /* as lh_run_time_check() */
    const char *points_file; /* remembers what was found, to go on from; NULL: none */
    /* Of a sweep that is cut into shards, each with a file of points of its own, named by
     * lh_sweep_shard_file(). @shards, 0: it is not. @shard from 1: only points of that one are
     * looked at; 0: what their files have is put together, and the rest is looked at. */
    guint shard, shards;
} LhSweepQuery;

/* One combination. */
typedef struct {
    char **values;   /* of the axes, in their order */
    GPtrArray *rows; /* of GStrv: one for each schedule; one alone where the case is refused; NULL:
                        interrupted before */
} LhSweepPoint;

typedef struct {
    GPtrArray *axes; /* of LhScenarioAxis *, the scenario's, in the order of their fields */
    char **columns;
    GPtrArray *points;  /* of LhSweepPoint *: the last axis changes from one to the next */
    guint refused;      /* points of which no schedule was tried */
    char *query_sha256; /* of the question and its inputs */
    LhSetup *setup;     /* of the first point that is not refused */
    LhScenario *first;  /* its scenario */
    GPtrArray *lost;    /* of char *: what is not in the files of shards, a sentence for each */
    guint in_shard;     /* points that are of the shard, or all */
    bool interrupted;
} LhSweep;

/* NULL for what cannot be asked or done; points that are refused are part of the answer, unless all
 * of them are. Caller frees. The answer borrows the query's scenario. */
LhSweep *lh_sweep(const LhSweepQuery *query, GError **error);
void lh_sweep_free(LhSweep *sweep);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSweep, lh_sweep_free)

/* Which column is @key; it is one. */
guint lh_sweep_column(const LhSweep *sweep, const char *key);
