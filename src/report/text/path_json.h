/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run for programs: longhaul.path/1, and the corresponding part of
 * longhaul.run/1 for an executed run.
 */
#pragma once

#include "critical_path/critical.h"
#include "report/data/document.h"

/* Fields of the document, with every step of the path; and of LhPathParts, for a path that cannot
 * be simulated again. */
extern const LhField lh_path_fields[], lh_executed_path_fields[];

/* Fields of a critical path with the steps @path (of LhPathStep). Caller frees. */
typedef struct _LhPathParts LhPathParts;

LhPathParts *lh_path_parts_new(const LhCritical *critical, const GArray *path);
void lh_path_parts_free(LhPathParts *parts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPathParts, lh_path_parts_free)

/* Appends the document; @critical has simulated speed-ups. */
void lh_critical_json(const LhSetup *setup, const LhCompareRow *row, const LhCritical *critical,
                      const LhStamp *stamp, GString *out);
