/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log of a search (longhaul.points/1): one JSON object per line, in an order that depends only on
 * the query. A plan that was killed resumes from it.
 */
#pragma once

#include "planner/search.h"

typedef struct _LhSearchLog LhSearchLog;

/* Opens or creates @path for the query with hash @query_sha256. LH_ERROR_INPUT if the file belongs
 * to another query, or contains a line that a plan did not write. */
LhSearchLog *lh_search_log_open(const char *path, const char *query_sha256, GError **error);

/* The memory for searches; borrowed. */
const LhPlanMemory *lh_search_log_memory(LhSearchLog *points);

/* Closes and frees the log; true if everything was written. */
bool lh_search_log_close(LhSearchLog *points, GError **error);
void lh_search_log_free(LhSearchLog *points);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSearchLog, lh_search_log_free)
