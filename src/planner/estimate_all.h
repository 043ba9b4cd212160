/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quick estimates of all points of a space. Points share work: the attention part is estimated once
 * per (schedule, shape), the rest of the step once per (sharding, recomputation, interface of the
 * schedule).
 */
#pragma once

#include "base/task.h"
#include "planner/estimate.h"

typedef struct {
    const LhPlanSpace *space;
    /* By shape, with another sequence length; NULL where a shape is rejected. NULL: the shapes'
     * own. */
    LhSetup *const *setups;
    /* Jobs: at least 1. Several threads report to it at once; if it is ended, the remaining points
     * are skipped. */
    LhTask task;
    bool messages; /* include messages (estimate.h) */
    /* As though all remedies were on that a point may have, with loss `loss` of those on its menu,
     * from 1, 0: its own; points without that are rejected. For memory alone. */
    bool least, types; /* types: those of the optimizer's states, too */
    guint loss;
    /* Called from any thread, once per point. @estimate is NULL for a point that is rejected for
     * @reason. */
    void (*found)(void *data, guint point, const LhPlanEstimate *estimate, const char *reason);
    void *data;
} LhPlanEstimates;

void lh_plan_estimate_all(const LhPlanEstimates *query);

/* The parts of all estimates, kept to estimate further points and to refine single ones. */
typedef struct _LhPlanEstimateTable LhPlanEstimateTable;

/* Estimates what all points share. @query is copied, what it names borrowed. Caller frees. */
LhPlanEstimateTable *lh_plan_estimate_table_new(const LhPlanEstimates *query);
void lh_plan_estimate_table_free(LhPlanEstimateTable *table);

/* Estimates all points with @scouts as given that are not estimated yet; see
 * lh_plan_is_scout(). */
void lh_plan_estimate_table_add(LhPlanEstimateTable *table, bool scouts);

/* Whether a point is one of a few that are likely to be fast or to fit, for each division of the
 * GPUs: small micro-batches, one chunk per stage, usual sharding and little recomputation. */
bool lh_plan_is_scout(const LhPlanSpace *space, guint point);

/* Lower bound of a point that is estimated and not rejected, with the exchanges of its pipeline
 * (lh_plan_estimate_exchanges()); 0 where that adds nothing. From any thread. */
LhTime lh_plan_estimate_table_refine(const LhPlanEstimateTable *table, guint point);
