/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executed runs, as tables and as JSON (longhaul.run/1).
 */
#pragma once

#include "critical_path/executed_path.h"
#include "execute/execute.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

/* Tables of errors and their limits; counts by executor, verifier and simulator. Caller frees. */
LhTable *lh_describe_errors(const LhExecuted *executed);
LhTable *lh_describe_counts(const LhExecuted *executed);

/* Appends one paragraph: what ran, how long, and whether it is correct. */
void lh_describe_run(const LhSetup *setup, const LhExecuted *executed,
                     const LhExecuteParams *params, GString *out);

/* Appends whether the run is correct, and what was not checked. */
void lh_describe_outcome(const LhExecuted *executed, const LhExecuteParams *params, GString *out);

/* Appends tables of the critical path, or a sentence that no op ran (NULL). */
void lh_describe_executed_path(const LhExecutedPath *path, LhFormat format, GString *out);

/* Fields of the document. */
extern const LhField lh_run_fields[];

/* Appends the document. @path: the critical path, if requested; may be NULL. */
void lh_run_json(const LhSetup *setup, const LhExecuted *executed, const LhExecuteParams *params,
                 const LhExecutedPath *path, const LhStamp *stamp, GString *out);
