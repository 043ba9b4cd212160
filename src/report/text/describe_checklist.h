/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What papers state, line by line, beside predictions: for people and machines.
 */
#pragma once

#include "papers/checklist.h"
#include "report/base/table.h"

/* A line for each of @lines (of LhCheckedLine). Caller frees. */
LhTable *lh_describe_checklist(const GArray *lines);

/* Likewise in the document longhaul.reproduction/1, as member "checklist"; NULL is null. */
void lh_checklist_json(LhJsonWriter *w, const GArray *lines);
