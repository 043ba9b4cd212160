/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plan writes, longhaul.plan/1, as an outcome.
 */
#pragma once

#include "base/json/json.h"
#include "report/diff/outcome.h"

/* Reads a document of a plan: the fastest ways of each cluster. */
bool lh_outcome_read_plan(LhOutcome *o, const LhJson *json, GError **error);
