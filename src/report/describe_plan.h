/* A plan for people. */
#pragma once

#include "report/plan_values.h"

/* Appends it in @format, a table or Markdown: for each cluster its fastest ways and what is to say
 * of them, then the clusters beside each other. */
void lh_describe_plan(const LhPlanQuery *query, const LhPlanAnswer *answer,
                      const LhPlanWeights *weights, LhFormat format, GString *out);

/* "tp 2, cp 8, dp 1, usp ..., fsdp, recomputed: remat": a way in few words; caller frees. */
char *lh_describe_way(const LhPlanSpace *space, guint point);
