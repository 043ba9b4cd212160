/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison for people.
 */
#pragma once

#include "compare/compare.h"
#include "report/base/table.h"

/* Its table; caller frees. */
LhTable *lh_describe_comparison(const LhSetup *setup, const LhComparison *comparison);

/* Appends a sentence or two: which schedule is the fastest, by how much, and what limits it. */
void lh_describe_winner(const LhSetup *setup, const LhComparison *comparison, GString *out);

/* Appends all that is to be said beside the table: the winner, how good its time is to, where the
 * constants come from, and @where they are to be seen ("--provenance"). */
void lh_describe_answer(const LhSetup *setup, const LhComparison *comparison, const char *where,
                        GString *out);

/* Appends " @name is bound by the NICs (63 % of its critical path): 10 % more bandwidth would save
 * ...": one sentence or two, nothing if @bound is NULL. */
void lh_describe_bound(const LhSetup *setup, const LhBottleneck *bound, const char *name,
                       GString *out);
