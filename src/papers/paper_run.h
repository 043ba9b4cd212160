/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts the cases of published tables in parallel. Work that cases share is simulated once; no
 * answer depends on the number of threads.
 */
#pragma once

#include "papers/paper_case.h"
#include "scenario/constant.h"

/*
 * Predicts the judged and fitted ones of @cases (of LhPaperCase *); rejected ones become
 * LH_CASE_UNPREDICTED with the reason. @constants may be NULL: the files' values. @jobs: threads;
 * 0: as cores and memory allow. LH_ERROR_RUNTIME if a simulation failed for lack of memory; @cases
 * are then unchanged.
 */
bool lh_paper_run(const LhPaper *paper, const GPtrArray *cases, const LhConstants *constants,
                  guint jobs, GError **error);
