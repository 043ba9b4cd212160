/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcome of a point as one line of JSON, in log files and between processes.
 */
#pragma once

#include "planner/search.h"

/* The object on one line, without a line end. @cluster and @way (for readers of the file) may be
 * NULL: they are then left out. Caller frees. */
char *lh_search_record_text(const char *cluster, guint point, const char *way,
                            const LhPlanOutcome *outcome);

/*
 * Reads such an object from @text; messages name it @name. Allocates @cluster (caller frees; NULL
 * if absent) and the reason in @outcome (likewise). LH_ERROR_INPUT.
 */
bool lh_search_record_read(const char *name, const char *text, char **cluster, guint *point,
                           LhPlanOutcome *outcome, GError **error);
