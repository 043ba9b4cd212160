/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fitting the constants of a published table to its rows.
 */
#pragma once

#include "papers/paper_run.h"

/* A constant before and after. */
typedef struct {
    LhConstant constant;
    double value, fitted;
} LhFittedConstant;

/*
 * Fits the constants that @paper names to the @cases (of LhPaperCase *) that are fitted: in @fitted
 * (of LhFittedConstant, caller unrefs), or NULL there if the paper names none or has no such case.
 * What is predicted of these cases is then of no use. @jobs as in lh_paper_run(), whose errors it
 * has, too.
 */
bool lh_paper_fit(const LhPaper *paper, const GPtrArray *cases, guint jobs, GArray **fitted,
                  GError **error);

/* As constants to predict with. @fitted may be NULL: the files'. */
LhConstants lh_fitted_constants(const GArray *fitted);
