/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as JSON.
 */
#pragma once

#include "report/data/document.h"
#include "report/data/plan_values.h"

/* Fields of the document. */
extern const LhField lh_plan_fields[];

/* Document of a plan, longhaul.plan/1. */
void lh_plan_json(const LhPlanQuery *query, const LhPlanAnswer *answer,
                  const LhPlanWeights *weights, const LhStamp *stamp, GString *out);
