/*
 * What searches have found, in a file of lines (longhaul.points/1): one JSON object each, in an
 * order that depends on the question alone. A plan that was killed finds what it had found again.
 */
#pragma once

#include "planner/search.h"

typedef struct _LhPlanPoints LhPlanPoints;

/* Opens @path, or makes it, for the question of @query_sha256. LH_ERROR_INPUT if it is of another
 * one, or a line of it is none of ours. */
LhPlanPoints *lh_plan_points_open(const char *path, const char *query_sha256, GError **error);

/* For searches; borrowed. */
const LhPlanMemory *lh_plan_points_memory(LhPlanPoints *points);

/* Whether all was written. Frees them. */
bool lh_plan_points_close(LhPlanPoints *points, GError **error);
void lh_plan_points_free(LhPlanPoints *points);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPlanPoints, lh_plan_points_free)
