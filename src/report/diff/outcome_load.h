/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents of results, loaded to be compared.
 */
#pragma once

#include "report/diff/outcome.h"

/* LH_ERROR_INPUT with file, line and field if it cannot be used. @path must outlive it. Caller
 * frees. */
LhOutcome *lh_outcome_load(const char *path, GError **error);
