/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sweep under way, and its points: all combinations of values.
 */
#pragma once

#include "base/files/append_log.h"
#include "compare/sweep.h"

#include <pthread.h>

/* What the first pass finds of a point. */
typedef struct {
    GError *refusal; /* NULL: it can be compared */
    double seconds;  /* that this takes on one core */
    uint32_t ranks;
    char *inputs; /* a line for each file that it depends on */
} LhSweepReady;

/* A sweep under way. */
typedef struct {
    const LhSweepQuery *query;
    LhSweep *sweep;
    LhSweepReady *ready;  /* of each point */
    GArray *mine;         /* of guint: the points that are looked at, in their order */
    guint first;          /* place in it that is done next: all before it are */
    LhAppendLog *journal; /* NULL: none */
    guint written;        /* of them, those of which it has a line */
    pthread_mutex_t lock; /* for the rows of points, and what follows */
    guint done;
    bool interrupted;
    GError *failure; /* of this machine, not of a point; NULL: none */
} LhSweepRun;

/* Point @index. */
LhSweepPoint *lh_sweep_point(const LhSweep *sweep, guint index);

/* Which point is at @place of those that are looked at. */
guint lh_sweep_mine_at(const LhSweepRun *run, guint place);

/* Of LhSweepPoint *. */
void lh_sweep_point_free(gpointer data);

/* Adds all combinations of the values of the axes; an error if they are too many. */
bool lh_sweep_add_points(LhSweep *sweep, const LhScenario *scenario, GError **error);

/* What point @index asks. Caller frees. */
LhScenario *lh_sweep_point_scenario(const LhSweep *sweep, const LhScenario *base, guint index);

/* For the rows of a point. Caller unrefs. */
GPtrArray *lh_sweep_new_rows(void);
