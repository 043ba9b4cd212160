/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run with real data, in tables and as JSON (longhaul.run/1).
 */
#pragma once

#include "critical_path/executed_path.h"
#include "execute/execute.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

/* Errors beside their gates; counts by executor, verifier and simulator. Callers free. */
LhTable *lh_describe_errors(const LhExecuted *executed);
LhTable *lh_describe_counts(const LhExecuted *executed);

/* One paragraph: what ran, how long, whether it is right. */
void lh_describe_run(const LhSetup *setup, const LhExecuted *executed,
                     const LhExecuteParams *params, GString *out);

/* Whether it is right, and what is not checked. */
void lh_describe_outcome(const LhExecuted *executed, const LhExecuteParams *params, GString *out);

/* Appends tables of what made the time of the run; of one that ran no op (NULL) that there is
 * nothing. */
void lh_describe_executed_path(const LhExecutedPath *path, LhFormat format, GString *out);

/* Of the document. */
extern const LhField lh_run_fields[];

/* @path: what made the time, of a run that was asked for it; may be NULL. */
void lh_run_json(const LhSetup *setup, const LhExecuted *executed, const LhExecuteParams *params,
                 const LhExecutedPath *path, const LhStamp *stamp, GString *out);
