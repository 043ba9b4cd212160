/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of an executed run: the chain of ops and messages that determined the measured
 * makespan. It is found from the times of issue, start and end of ops, and from the dependencies of
 * the program. Definitions and limits: docs/reference/model.md, "The critical path of an executed
 * run".
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
