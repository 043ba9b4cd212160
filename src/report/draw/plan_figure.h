/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure of a plan's Pareto front: time and memory of the configurations that no other one beats in
 * both, a line per cluster, a marker per recomputation policy.
 */
#pragma once

#include "report/data/plan_values.h"
#include "report/draw/figure.h"

bool lh_plan_figure(const LhPlanAnswer *answer, LhFigureTo to, GError **error);
