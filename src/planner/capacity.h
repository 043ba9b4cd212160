/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fits in memory, by memory alone: the longest sequence, and the smallest cluster.
 */
#pragma once

#include "base/task.h"
#include "planner/estimate.h"

/* The longest sequence that some point of a space fits with. */
typedef struct {
    uint64_t tokens;       /* a multiple of `unit`; 0: not even the shortest fits */
    uint64_t unit;         /* that every point can cut */
    guint point;           /* that fits with it */
    LhPlanEstimate fits;   /* what it needs with so many tokens ... */
    LhPlanEstimate beyond; /* ... and with one unit more, which no point fits with */
} LhPlanLongest;

/*
 * Finds it. The space has any length: its points are tried with others. The peak of a point grows
 * with the length, by no less the longer it is, so two short lengths say where it ends at most, and
 * points are tried in the order of that. LH_ERROR_NO if none fits, or memory has no limit. False
 * without error if @task is ended; it has jobs, at least 1, and several threads ask it at once.
 */
bool lh_plan_longest(const LhPlanSpace *space, const LhTask *task, LhPlanLongest *longest,
                     GError **error);

/* Whether the step that @scenario describes, with the first of its schedules, fits: likewise by the
 * allocs and frees of its program, without playing it. A step that is refused is LH_ERROR_NO. */
bool lh_plan_step_fits(const LhScenario *scenario, bool *fits, GError **error);

/* A point that fits, G_MAXUINT if there is none. It is one of those that need little, not the one
 * that needs least. */
guint lh_plan_find_fitting(const LhPlanSpace *space, guint threads);

/* Whether the states of the setup's model and what every policy keeps of each layer, cut among
 * @gpus GPUs, are already more than fits. */
bool lh_plan_is_hopeless(const LhSetup *setup, uint32_t gpus);
