/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What searches have found, in a file of lines (longhaul.points/1): one JSON object each, in an
 * order that depends on the question alone. A plan that was killed finds what it had found again.
 */
#pragma once

#include "planner/search.h"

typedef struct _LhSearchLog LhSearchLog;

/* Opens @path, or makes it, for the question of @query_sha256. LH_ERROR_INPUT if it is of another
 * one, or a line of it is none of ours. */
LhSearchLog *lh_search_log_open(const char *path, const char *query_sha256, GError **error);

/* For searches; borrowed. */
const LhPlanMemory *lh_search_log_memory(LhSearchLog *points);

/* Whether all was written. Frees them. */
bool lh_search_log_close(LhSearchLog *points, GError **error);
void lh_search_log_free(LhSearchLog *points);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSearchLog, lh_search_log_free)
