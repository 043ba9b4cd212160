/*
 * Where the constants of a simulation come from.
 */
#pragma once

#include "plan/compare.h"
#include "report/table.h"

/* Appends one line: the weakest provenance of the cluster's constants, and of those that were used;
 * @where all of them are to be seen ("--provenance"). */
void lh_describe_trust(const LhSetup *setup, LhProvenance weakest, const char *where, GString *out);

/* Appends one line: between which times @row's should be, four times in five; of a cost model
 * nothing. */
void lh_describe_interval(const LhSetup *setup, const LhCompareRow *row, GString *out);

/* Appends one line if curves were used beyond the blocks that they were fitted to; else nothing. */
void lh_describe_extrapolation(const LhExtrapolation *beyond, GString *out);

/* "fa3 fwd causal d128"; caller frees. */
char *lh_attention_row_name(const LhAttentionRow *row);

/* Appends the limits that pairs of GPUs have on links of this class, between @before and @after;
 * nothing without any. */
void lh_describe_pair_limits(const LhLinkClass *link, const char *before, const char *after,
                             GString *out);

/* All of them, with their sources; caller frees. */
LhTable *lh_describe_constants(const LhSetup *setup);
