/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for people. */
#pragma once

#include "report/data/plan_values.h"

/* Appends a plan in @format, a table or Markdown: the query, for each cluster its fastest
 * configurations and findings, and the comparison of clusters. A cluster's part can be printed when
 * the cluster is finished. */
void lh_describe_plan_head(const LhPlanQuery *query, const LhPlanAnswer *answer, LhFormat format,
                           GString *out);
void lh_describe_plan_part(const LhPlanQuery *query, const LhPlanAnswer *answer,
                           const LhPlanWeights *weights, guint index, LhFormat format,
                           GString *out);
void lh_describe_plan_end(const LhPlanAnswer *answer, const LhPlanWeights *weights, LhFormat format,
                          GString *out);

/* "tp 2, cp 8, dp 1, usp ..., fsdp, recomputed: remat": a configuration in short; caller frees. */
char *lh_describe_way(const LhPlanSpace *space, guint point);

/* Parts of it, used by pages. Lines of text that end in a newline each. @index: of a cluster of the
 * answer. Their tables are in plan_tables.h. */
void lh_describe_plan_question(const LhPlanQuery *query, const LhPlanSpace *space, GString *out);
void lh_describe_plan_cluster(const LhPlanCluster *cluster, GString *out);
/* For a cluster whose search has begun: the fastest configuration; those that do not fit or are
 * refused. */
void lh_describe_plan_answer(const LhPlanQuery *query, const LhPlanAnswer *answer,
                             const LhPlanWeights *weights, guint index, GString *out);
void lh_describe_plan_rest(const LhPlanCluster *cluster, GString *out);
