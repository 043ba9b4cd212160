/*
 * A comparison for people.
 */
#pragma once

#include "plan/compare.h"
#include "report/table.h"

/* Its table; caller frees. */
LhTable *lh_describe_comparison(const LhSetup *setup, const LhComparison *comparison);

/* Appends a sentence or two: which schedule is the fastest, by how much, and what limits it. */
void lh_describe_winner(const LhSetup *setup, const LhComparison *comparison, GString *out);
