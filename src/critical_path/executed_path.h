/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run that was executed: the chain of ops and messages that made the
 * makespan that was measured, found from when ops were issued, began and ended, and from what the
 * program has them wait for. Definitions and limits: docs/reference/model.md, "The critical path of
 * an executed run".
 */
#pragma once

#include "critical_path/critical.h"
#include "program/timeline.h"

typedef struct {
    LhSlackGraph *precedence; /* owned */
    GArray *path;             /* of LhPathStep, contiguous from 0 to the makespan; owned */
    LhCritical *critical;     /* owned; without savings */
} LhExecutedPath;

/*
 * Analyses a run of @program on the setup's cluster that took @makespan_ps. @records (of
 * LhTimelineRecord, sorted by rank and op): all ops that ran on streams, at least one; borrowed.
 * Caller frees.
 */
LhExecutedPath *lh_executed_path_new(const LhSetup *setup, const LhProgram *program,
                                     const GArray *records, LhTime makespan_ps);
void lh_executed_path_free(LhExecutedPath *path);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhExecutedPath, lh_executed_path_free)
