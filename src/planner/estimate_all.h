/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quick estimates of all points of a space. Points that have attention, or what is around it, in
 * common have it looked at once: schedules that are given and give back the same have the same
 * around them, and sharding and recomputation the same attention.
 */
#pragma once

#include "base/task.h"
#include "planner/estimate.h"

typedef struct {
    const LhPlanSpace *space;
    LhSetup *const *setups; /* by shape, of another length; NULL where a shape is refused. NULL: the
                               shapes' own */
    LhTask task; /* jobs: at least 1. Asked by several threads at once; if it ends this, points are
                    left out */
    bool messages; /* of these estimates, those with messages (estimate.h) */
    /* Called from any thread. @estimate is NULL for a point that is refused for @reason; each point
     * is found once. */
    void (*found)(void *data, guint point, const LhPlanEstimate *estimate, const char *reason);
    void *data;
} LhPlanEstimates;

void lh_plan_estimate_all(const LhPlanEstimates *query);
