/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pareto front of time and memory.
 */
#pragma once

#include "planner/search.h"

/* Whether the simulated point @index is on the front: no other simulated point is at least as good
 * in both and better in one. Of equal points the first is on the front. */
bool lh_plan_on_front(const LhPlanSearch *search, guint index);

/* Whether another simulated point dominates @index, even if @index is as fast as its lower
 * bound. */
bool lh_plan_is_beaten(const LhPlanSearch *search, guint index);
