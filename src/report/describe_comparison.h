/*
 * A comparison for people.
 */
#pragma once

#include "plan/compare.h"
#include "report/table.h"

/* Its table; caller frees. */
LhTable *lh_describe_comparison(const LhSetup *setup, const LhComparison *comparison);

/* Who wins, by how much, and what binds it: a sentence or two. */
void lh_describe_winner(const LhSetup *setup, const LhComparison *comparison, GString *out);
