/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicting the cases of published tables, several at once: what two cases have in common is
 * played once, and no answer depends on the number of threads.
 */
#pragma once

#include "papers/paper_case.h"
#include "scenario/constant.h"

/*
 * Fills in what is predicted of the @cases (of LhPaperCase *), those that are judged or fitted;
 * refused ones become LH_CASE_UNPREDICTED with the reason. @constants may be NULL: the files'.
 * @jobs: threads; 0: as the cores and the memory allow. LH_ERROR_RUNTIME if one could not be
 * played here, for want of memory; the @cases are then as they were.
 */
bool lh_paper_run(const LhPaper *paper, const GPtrArray *cases, const LhConstants *constants,
                  guint jobs, GError **error);
