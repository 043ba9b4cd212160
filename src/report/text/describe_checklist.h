/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What papers state, line by line, beside predictions: for people and machines.
 */
#pragma once

#include "papers/checklist.h"
#include "report/base/table.h"

/* A line for each of @lines (of LhCheckedLine). Caller frees. */
LhTable *lh_describe_checklist(const GArray *lines);

/* The same as the document longhaul.reproduction/1 has it: structs that these fields write, and
 * clear; NULL if @lines is. Caller frees. */
extern const LhField lh_checklist_line_fields[];
GArray *lh_checklist_values(const GArray *lines);
