/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provenance of the constants of a simulation.
 */
#pragma once

#include "compare/compare.h"
#include "compare/sensitivity.h"
#include "report/base/table.h"

/*
 * Appends one line: the constant to which most of the error bar of @row, which ran, is due, its
 * provenance, and the measurement that would narrow or halve the bar; @where all constants are
 * listed ("--provenance").
 */
void lh_describe_trust(const LhSetup *setup, const LhCompareRow *row, const char *where,
                       GString *out);

/* The same for known sensitivities (NULL: of a cost model), without a line break. */
void lh_describe_sensitivities(const LhSetup *setup, const LhSensitivities *sensitivities,
                               GString *out);

/* "the error bar of their ratio is 12 %, most of it the bandwidth of NVLink"; @most is from
 * lh_error_between_most(). */
void lh_describe_good_to(const LhSetup *setup, double error, int most, GString *out);

/* Appends one line: the interval expected to contain four of five measurements; nothing for a cost
 * model. */
void lh_describe_interval(const LhSetup *setup, const LhCompareRow *row, GString *out);

/* Appends one line if curves were extrapolated beyond the blocks of their fit; else nothing. */
void lh_describe_extrapolation(const LhExtrapolation *beyond, GString *out);

/* "fa3 fwd causal d128"; caller frees. */
char *lh_attention_row_name(const LhAttentionRow *row);

/* Appends the limits of pairs of GPUs on links of this class, between @before and @after; nothing
 * without limits. */
void lh_describe_pair_limits(const LhLinkClass *link, const char *before, const char *after,
                             GString *out);

/* Lists all constants with their sources; caller frees. */
LhTable *lh_describe_constants(const LhSetup *setup);
