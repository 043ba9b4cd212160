/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sim and compare write, longhaul.result/3 and longhaul.path/1, as an outcome.
 */
#pragma once

#include "base/json/json.h"
#include "report/diff/outcome.h"

/* Reads a document of schedules that were simulated. */
bool lh_outcome_read_result(LhOutcome *o, const LhJson *json, GError **error);

/* Reads a document of the critical path of one. */
bool lh_outcome_read_path(LhOutcome *o, const LhJson *json, GError **error);
