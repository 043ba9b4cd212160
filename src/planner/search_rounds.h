/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rounds of a search: which points are looked at next, and what came of them.
 */
#pragma once

#include "planner/search_pool.h"

/* Queues the open points in the order of their bounds. */
void lh_search_fill_queue(LhSearchPool *pool);

/* Chooses the points of the next round, looks at them and takes in what came of it. False if there
 * is none left. */
bool lh_search_next_round(LhSearchPool *pool);
