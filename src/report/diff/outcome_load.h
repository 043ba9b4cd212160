/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads documents of results for comparison.
 */
#pragma once

#include "report/diff/outcome.h"

/* Loads a result. LH_ERROR_INPUT with file, line and field if it is invalid. @path must outlive it.
 * Caller frees. */
LhOutcome *lh_outcome_load(const char *path, GError **error);
