/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of a plan: the fastest configurations on a cluster, and the comparison of clusters.
 */
#pragma once

#include "report/data/plan_values.h"

#define LH_MONEY_DECIMALS 2

/* Tables of cluster @index of the answer, on which something runs: the fastest configurations, and
 * the Pareto front of time and memory. Caller frees each. */
LhTable *lh_describe_ways(const LhPlanQuery *query, const LhPlanAnswer *answer,
                          const LhPlanWeights *weights, guint index);
LhTable *lh_describe_front(const LhPlanQuery *query, const LhPlanAnswer *answer,
                           const LhPlanWeights *weights, guint index);

/* Table of the fastest configuration on each cluster. Caller frees. */
LhTable *lh_describe_clusters(const LhPlanAnswer *answer, const LhPlanWeights *weights);

/* What each cluster has to turn on to fit; NULL: unknown for all. Caller frees. */
LhTable *lh_describe_fits(const LhPlanAnswer *answer);
