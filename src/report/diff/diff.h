/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of two results: what changed in which part, why the winner changed, and which
 * regressions exceed a tolerance. Reads the JSON of sim, compare and plan: longhaul.result/3,
 * longhaul.plan/1, longhaul.path/1.
 */
#pragma once

#include "report/base/table.h"
#include "report/diff/outcome.h"

/* A regression. */
typedef struct {
    const char *entry, *what; /* borrowed */
    double a, b;              /* NAN: does not run */
} LhRegression;

typedef struct {
    const LhOutcome *a, *b; /* borrowed */
    double tolerance;       /* a share; < 0: no limit */
    GArray *otherwise;      /* of LhQueryStampOtherwise: differences of the queries */
    GArray *regressions;    /* of LhRegression */
} LhDiff;

/* Compares two results. LH_ERROR_INPUT if they are of different kinds, or if one is partial and
 * there is a tolerance. @a and @b must outlive the comparison. Caller frees. */
LhDiff *lh_diff_new(const LhOutcome *a, const LhOutcome *b, double tolerance, GError **error);
void lh_diff_free(LhDiff *diff);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhDiff, lh_diff_free)

/* Names of all entries, those of A first: of const char *. Caller unrefs. */
GPtrArray *lh_diff_names(const LhDiff *diff);

/* All quantities of an entry in either result, those of A first: of const LhQuantity *. Caller
 * unrefs. */
GPtrArray *lh_diff_quantities(const LhEntry *a, const LhEntry *b);
