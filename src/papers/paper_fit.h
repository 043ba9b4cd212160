/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits the constants of a published table to its rows.
 */
#pragma once

#include "papers/paper_run.h"

/* A constant before and after the fit. */
typedef struct {
    LhConstant constant;
    double value, fitted;
} LhFittedConstant;

/*
 * Fits the constants that @paper names to the fitted ones of @cases (of LhPaperCase *). Result in
 * @fitted (of LhFittedConstant, caller unrefs); NULL if the paper names none or has no such case.
 * The predictions of these cases are overwritten. @jobs and errors as in lh_paper_run().
 */
bool lh_paper_fit(const LhPaper *paper, const GPtrArray *cases, guint jobs, GArray **fitted,
                  GError **error);

/* The result as constants to predict with. @fitted may be NULL: the files' values. */
LhConstants lh_fitted_constants(const GArray *fitted);
