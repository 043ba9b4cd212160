/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the constants of a simulation come from.
 */
#pragma once

#include "compare/compare.h"
#include "compare/sensitivity.h"
#include "report/base/table.h"

/*
 * Appends one line: the constant that matters most for the time of @row, which ran, what it would
 * be good to if that were measured, and what would halve its error bar; @where all constants are to
 * be seen ("--provenance").
 */
void lh_describe_trust(const LhSetup *setup, const LhCompareRow *row, const char *where,
                       GString *out);

/* The same of what was found of it before (NULL: of a cost model), without an end of line. */
void lh_describe_sensitivities(const LhSetup *setup, const LhSensitivities *sensitivities,
                               GString *out);

/* What difference of two times is good to: "constants are good to 12 %, most of it by the rate of
 * NVLink", or "predictions are good to 5.0 %"; @most of lh_error_between_most(). */
void lh_describe_good_to(const LhSetup *setup, double error, int most, GString *out);

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
