/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of a plan: the fastest ways on a cluster, and clusters beside each other.
 */
#pragma once

#include "report/data/plan_values.h"

#define LH_MONEY_DECIMALS 2

/* Of a cluster on which something runs, that of @index in the answer: the fastest ways, and those
 * that no other one beats in both time and memory. Caller frees each. */
LhTable *lh_describe_ways(const LhPlanQuery *query, const LhPlanAnswer *answer,
                          const LhPlanWeights *weights, guint index);
LhTable *lh_describe_front(const LhPlanQuery *query, const LhPlanAnswer *answer,
                           const LhPlanWeights *weights, guint index);

/* The fastest way on each cluster. Caller frees. */
LhTable *lh_describe_clusters(const LhPlanAnswer *answer, const LhPlanWeights *weights);
