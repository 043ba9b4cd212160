/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans, longhaul.plan/1, as outcomes.
 */
#pragma once

#include "base/json/json.h"
#include "report/diff/outcome.h"

/* Reads the document of a plan: the fastest configurations of each cluster. */
bool lh_outcome_read_plan(LhOutcome *o, const LhJson *json, GError **error);
