/*
 * A run with real data, in tables and as JSON (longhaul.run/1).
 */
#pragma once

#include "plan/execute.h"
#include "report/result_json.h"
#include "report/table.h"

/* Errors beside their gates; counts by executor, verifier and simulator. Callers free. */
LhTable *lh_describe_errors(const LhExecuted *executed);
LhTable *lh_describe_counts(const LhExecuted *executed);

/* One paragraph: what ran, how long, whether it is right. */
void lh_describe_run(const LhSetup *setup, const LhExecuted *executed,
                     const LhExecuteParams *params, GString *out);

/* Whether it is right, and what is not checked. */
void lh_describe_outcome(const LhExecuted *executed, const LhExecuteParams *params, GString *out);

void lh_run_json(const LhSetup *setup, const LhExecuted *executed, const LhExecuteParams *params,
                 const LhStamp *stamp, GString *out);
