/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims of papers beside predictions, for people and programs.
 */
#pragma once

#include "papers/checklist.h"
#include "report/base/table.h"

/* One row for each of @lines (of LhCheckedLine). Caller frees. */
LhTable *lh_describe_checklist(const GArray *lines);

/* The same for longhaul.reproduction/1: structs that these fields write and clear; NULL if @lines
 * is. Caller frees. */
extern const LhField lh_checklist_line_fields[];
GArray *lh_checklist_values(const GArray *lines);
