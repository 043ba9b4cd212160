/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as JSON.
 */
#pragma once

#include "report/data/plan_values.h"

/* The document of a plan, longhaul.plan/1. */
void lh_plan_json(const LhPlanQuery *query, const LhPlanAnswer *answer,
                  const LhPlanWeights *weights, const LhStamp *stamp, GString *out);
