/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which way is faster: pairs of published numbers that answer one question in two ways, another
 * schedule or another system, and whether predictions have the same order. A table whose numbers
 * are all 10 % off can still choose well, and one that is 3 % off can choose badly.
 */
#pragma once

#include "papers/paper_case.h"

#define LH_PAIR_APART 0.02 /* published numbers less apart are not told apart by measuring */

/*
 * Counts pairs among the judged of @cases (of LhPaperCase *) of metric @metric, or of each metric
 * if that is negative: numbers of one metric and options, but for those that say how the work is
 * shared (schedules, their options, sizes of parallelism, systems), that are more than
 * LH_PAIR_APART apart. In order are those whose predictions differ in the same direction. Numbers
 * of lower bounds and what does not fit in memory are in no pair.
 */
void lh_paper_pairs(const LhPaper *paper, const GPtrArray *cases, int metric, guint *pairs,
                    guint *in_order);
