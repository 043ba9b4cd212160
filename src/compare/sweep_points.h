/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running sweep and its points: all combinations of values.
 */
#pragma once

#include "base/files/append_log.h"
#include "compare/sweep.h"

#include <pthread.h>

/* Result of the first pass for a point. */
typedef struct {
    GError *refusal; /* NULL: the point can be compared */
    double seconds;  /* estimated duration on one core */
    uint32_t ranks;
    char *inputs; /* a line per input file */
} LhSweepReady;

/* A running sweep. */
typedef struct {
    const LhSweepQuery *query;
    LhSweep *sweep;
    LhSweepReady *ready;  /* of each point */
    GArray *mine;         /* of guint: the points to run, in order */
    guint first;          /* position in it of the next point; all before are done */
    LhAppendLog *journal; /* NULL: none */
    guint written;        /* points already in it */
    pthread_mutex_t lock; /* protects the points' rows and the members below */
    guint done;
    bool interrupted;
    GError *failure; /* failure of the machine, not of a point; NULL: none */
} LhSweepRun;

/* Returns point @index. */
LhSweepPoint *lh_sweep_point(const LhSweep *sweep, guint index);

/* Index of the point at @place among those to run. */
guint lh_sweep_mine_at(const LhSweepRun *run, guint place);

/* Frees an LhSweepPoint *. */
void lh_sweep_point_free(gpointer data);

/* Adds all combinations of the axes' values; an error if there are too many. */
bool lh_sweep_add_points(LhSweep *sweep, const LhScenario *scenario, GError **error);

/* The scenario of point @index. Caller frees. */
LhScenario *lh_sweep_point_scenario(const LhSweep *sweep, const LhScenario *base, guint index);

/* New array for the rows of a point. Caller unrefs. */
GPtrArray *lh_sweep_new_rows(void);
