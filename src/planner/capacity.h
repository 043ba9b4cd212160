/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory capacity without simulation: the longest sequence, and the smallest cluster.
 */
#pragma once

#include "base/task.h"
#include "planner/estimate.h"

/* The longest sequence with which some point of a space fits. */
typedef struct {
    uint64_t tokens;       /* a multiple of `unit`; 0: not even the shortest fits */
    uint64_t unit;         /* length that every point can split */
    guint point;           /* a point that fits with it */
    LhRemedies on;         /* what it then turns on */
    LhPlanEstimate fits;   /* its memory with `tokens` ... */
    LhPlanEstimate beyond; /* ... and with one unit more, with which no point fits */
} LhPlanLongest;

/*
 * Finds the longest sequence; the space's own sequence length does not matter. A point's peak
 * memory grows with the length, and its slope does not decrease. So two short lengths give an upper
 * bound for each point, and points are tried in the order of these. If the space has remedies, all
 * may be on; types of the optimizer's states only if no length fits without. LH_ERROR_NO if no
 * length fits, or memory has no limit. False without error if @task is ended; its jobs are at least
 * 1, and several threads may call it at once.
 */
bool lh_plan_longest(const LhPlanSpace *space, const LhTask *task, LhPlanLongest *longest,
                     GError **error);

/* Whether the training step of @scenario, with its first schedule, fits: from the allocs and frees
 * of its program, without simulation. LH_ERROR_NO for a rejected step. */
bool lh_plan_step_fits(const LhScenario *scenario, bool *fits, GError **error);

/* A point that fits; G_MAXUINT if there is none. It needs little memory, but not necessarily
 * least. */
guint lh_plan_find_fitting(const LhPlanSpace *space, guint threads);

/* Whether the model's states and the activations that every policy keeps exceed the memory of @gpus
 * GPUs, even if evenly divided. */
bool lh_plan_is_hopeless(const LhSetup *setup, uint32_t gpus);
