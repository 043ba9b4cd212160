/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points that no other one beats in both time and memory.
 */
#pragma once

#include "planner/search.h"

/* Whether no point that ran is at least as good as @index, which ran, in time and memory and better
 * in one of them. */
bool lh_plan_on_front(const LhPlanSearch *search, guint index);

/* Whether another point that ran is as good, and better in time or memory, whatever @index takes
 * beyond what it takes at least. */
bool lh_plan_is_beaten(const LhPlanSearch *search, guint index);
