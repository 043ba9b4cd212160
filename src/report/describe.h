/*
 * Results in words and tables, for people.
 */
#pragma once

#include "plan/compare.h"
#include "report/table.h"

/* Lines that say what is simulated, on what, with which options, and what is left out. */
void lh_describe_case(const LhSetup *setup, GString *out);

/* One line on the schedules that are not of this kind of attention; nothing if there are none. */
void lh_describe_left_out(const LhSetup *setup, GString *out);

/* The table of a comparison; caller frees. */
LhTable *lh_describe_comparison(const LhSetup *setup, const LhComparison *comparison);
/* Who wins, by how much, and what binds it: a sentence or two. */
void lh_describe_winner(const LhSetup *setup, const LhComparison *comparison, GString *out);

/* The tables of one run. Each caller frees. */
LhTable *lh_describe_parts(const LhSimResult *result);  /* where the time went */
LhTable *lh_describe_ranks(const LhCompareRow *row);    /* smallest, mean and largest over ranks */
LhTable *lh_describe_traffic(const LhCompareRow *row);  /* bytes by tier, beside the closed form */
LhTable *lh_describe_memory(const LhSimResult *result); /* by category, at the peak */

/* One line on where the constants come from ... */
void lh_describe_trust(const LhSetup *setup, LhProvenance weakest, GString *out);
/* ... and the whole list; caller frees. */
LhTable *lh_describe_constants(const LhSetup *setup);
