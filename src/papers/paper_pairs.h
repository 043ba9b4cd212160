/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranking accuracy: pairs of published numbers that differ only in schedule or framework, and
 * whether predictions order them alike. A table whose numbers are all 10 % off can still choose
 * well, and one that is 3 % off can choose badly.
 */
#pragma once

#include "papers/paper_case.h"

#define LH_PAIR_APART 0.02 /* published numbers that are closer count as a tie */

/*
 * Counts pairs among the judged @cases (of LhPaperCase *) of metric @metric, or of each metric if
 * it is negative. A pair has the same metric and options except for those that divide the work
 * (schedules, their options, parallel sizes, frameworks), and published numbers more than
 * LH_PAIR_APART apart. It is in order if the predictions differ in the same direction. Lower bounds
 * and numbers that do not fit in memory are in no pair.
 */
void lh_paper_pairs(const LhPaper *paper, const GPtrArray *cases, int metric, guint *pairs,
                    guint *in_order);
