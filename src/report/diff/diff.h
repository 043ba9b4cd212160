/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two results of longhaul beside each other: what has changed in which part, why another one wins,
 * and what has become worse by more than is tolerated. Reads the JSON that sim, compare and plan
 * write: longhaul.result/3, longhaul.plan/1, longhaul.path/1.
 */
#pragma once

#include "report/base/table.h"
#include "report/diff/outcome.h"

/* Something that is worse. */
typedef struct {
    const char *entry, *what; /* borrowed */
    double a, b;              /* NAN: it does not run */
} LhRegression;

typedef struct {
    const LhOutcome *a, *b; /* borrowed */
    double tolerance;       /* a share; < 0: everything is tolerated */
    GArray *otherwise;      /* of LhQueryStampOtherwise: what was not asked alike */
    GArray *regressions;    /* of LhRegression */
} LhDiff;

/* LH_ERROR_INPUT if they are not of one kind, or if one is partial and there is a tolerance. @a and
 * @b must outlive it. Caller frees. */
LhDiff *lh_diff_new(const LhOutcome *a, const LhOutcome *b, double tolerance, GError **error);
void lh_diff_free(LhDiff *diff);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhDiff, lh_diff_free)

/* Names of the entries of both, those of A first: of const char *. Caller unrefs. */
GPtrArray *lh_diff_names(const LhDiff *diff);

/* All quantities of an entry on both sides, those of A first: of const LhQuantity *. Caller
 * unrefs. */
GPtrArray *lh_diff_quantities(const LhEntry *a, const LhEntry *b);
