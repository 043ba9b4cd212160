/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a point, as one line of JSON: in files of points, and between processes.
 */
#pragma once

#include "planner/search.h"

/* The object on one line, without its end. @cluster and @way (for people) may be NULL, which leaves
 * them out. Caller frees. */
char *lh_search_record_text(const char *cluster, guint point, const char *way,
                            const LhPlanOutcome *outcome);

/*
 * Reads such an object from @text, which messages call @name. @cluster (caller frees; NULL where
 * the text has none) and the reason in @outcome (likewise) are new. LH_ERROR_INPUT.
 */
bool lh_search_record_read(const char *name, const char *text, char **cluster, guint *point,
                           LhPlanOutcome *outcome, GError **error);
