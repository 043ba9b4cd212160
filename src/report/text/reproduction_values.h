/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published tables and predictions, for programs.
 */
#pragma once

#include "papers/reproduce.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

/* All values of all tables, for CSV. Caller frees. */
LhTable *lh_reproduction_table(const GPtrArray *tables);

/* Fields of the document longhaul.reproduction/1. */
extern const LhField lh_reproduction_fields[];

/* Appends the document. @checklist: of LhCheckedLine; NULL: not requested. */
void lh_reproduction_json(const GPtrArray *tables, const GArray *checklist, const LhStamp *stamp,
                          GString *out);

/* Metric @index of the table's paper. */
const LhPaperMetric *lh_reproduced_metric(const LhReproducedTable *table, guint index);

/* Table @index of @tables, of LhReproducedTable *. */
const LhReproducedTable *lh_reproduced_at(const GPtrArray *tables, guint index);

/* Whether the value is compared, so it has an error. */
bool lh_reproduced_is_compared(const LhPaperCase *c);

/* For a bound, which has no error: whether it holds; NULL for other values. */
const char *lh_reproduced_bound(const LhPaperCase *c);
