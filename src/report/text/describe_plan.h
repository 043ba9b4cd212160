/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for people. */
#pragma once

#include "report/data/plan_values.h"

/* Appends a plan in @format, a table or Markdown: the question, for each cluster its fastest ways
 * and what is to say of them, and the clusters beside each other. A part is whole when its cluster
 * is finished. */
void lh_describe_plan_head(const LhPlanQuery *query, const LhPlanAnswer *answer, LhFormat format,
                           GString *out);
void lh_describe_plan_part(const LhPlanQuery *query, const LhPlanAnswer *answer,
                           const LhPlanWeights *weights, guint index, LhFormat format,
                           GString *out);
void lh_describe_plan_end(const LhPlanAnswer *answer, const LhPlanWeights *weights, LhFormat format,
                          GString *out);

/* "tp 2, cp 8, dp 1, usp ..., fsdp, recomputed: remat": a way in few words; caller frees. */
char *lh_describe_way(const LhPlanSpace *space, guint point);

/* The pieces of it, of which pages are made. Lines of words, which end in a newline each. @index is
 * that of a cluster of the answer. Their tables are in plan_tables.h. */
void lh_describe_plan_question(const LhPlanQuery *query, const LhPlanSpace *space, GString *out);
void lh_describe_plan_cluster(const LhPlanCluster *cluster, GString *out);
/* Of a cluster whose search has begun: what is fastest; and what is too large or refused. */
void lh_describe_plan_answer(const LhPlanQuery *query, const LhPlanAnswer *answer,
                             const LhPlanWeights *weights, guint index, GString *out);
void lh_describe_plan_rest(const LhPlanCluster *cluster, GString *out);
