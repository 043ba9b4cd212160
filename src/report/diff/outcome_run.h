/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of sim and compare, longhaul.result/3 and longhaul.path/1, as outcomes.
 */
#pragma once

#include "base/json/json.h"
#include "report/diff/outcome.h"

/* Reads the document of simulated schedules. */
bool lh_outcome_read_result(LhOutcome *o, const LhJson *json, GError **error);

/* Reads the document of a critical path. */
bool lh_outcome_read_path(LhOutcome *o, const LhJson *json, GError **error);
