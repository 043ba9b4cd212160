/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparisons for people.
 */
#pragma once

#include "compare/compare.h"
#include "report/base/table.h"

/* Table of the comparison; caller frees. */
LhTable *lh_describe_comparison(const LhSetup *setup, const LhComparison *comparison);

/* Appends one or two sentences: the fastest schedule, its lead, and its bottleneck. */
void lh_describe_winner(const LhSetup *setup, const LhComparison *comparison, GString *out);

/* Appends all sentences after the table: the winner, the error bar of its time, the provenance of
 * constants, and @where to list them ("--provenance"). */
void lh_describe_answer(const LhSetup *setup, const LhComparison *comparison, const char *where,
                        GString *out);

/* Appends " @name is bound by the NICs (63 % of its critical path): 10 % more bandwidth would save
 * ...": one or two sentences, nothing if @bound is NULL. */
void lh_describe_bound(const LhSetup *setup, const LhBottleneck *bound, const char *name,
                       GString *out);
