/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of a search: chooses points and merges their outcomes.
 */
#pragma once

#include "planner/search_pool.h"

/* Queues the open points with this lh_plan_is_scout(), in the order of their lower bounds. */
void lh_search_fill_queue(LhSearchPool *pool, bool scouts);

/* Chooses the points of the next round, evaluates them and merges the outcomes. False if none are
 * left. */
bool lh_search_next_round(LhSearchPool *pool);
