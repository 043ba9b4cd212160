/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run for machines: longhaul.path/1, and the part of longhaul.run/1 that
 * says the same of a run that was executed.
 */
#pragma once

#include "critical_path/critical.h"
#include "report/data/document.h"

/* Of the document, with every step of the path; and of what LhPathParts has, of a path that cannot
 * be played again. */
extern const LhField lh_path_fields[], lh_executed_path_fields[];

/* What is written of a path, whose steps (of LhPathStep) are @path. Caller frees. */
typedef struct _LhPathParts LhPathParts;

LhPathParts *lh_path_parts_new(const LhCritical *critical, const GArray *path);
void lh_path_parts_free(LhPathParts *parts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPathParts, lh_path_parts_free)

/* Appends the document; @critical's speed-ups were played. */
void lh_critical_json(const LhSetup *setup, const LhCompareRow *row, const LhCritical *critical,
                      const LhStamp *stamp, GString *out);
