/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparisons of two results, for people and for programs (longhaul.diff/1).
 */
#pragma once

#include "report/data/result_json.h"
#include "report/diff/diff.h"

/* Differences between the queries; NULL: none. Caller frees, as for all tables here. */
LhTable *lh_describe_diff_case(const LhDiff *diff);

/* Times and places in both results, and the part with the largest change. */
LhTable *lh_describe_diff_entries(const LhDiff *diff);

/* Changes of the entry with that name; NULL: none. */
LhTable *lh_describe_diff_parts(const LhDiff *diff, const char *name);

/* Appends sentences: the winners and why, and regressions beyond the tolerance. */
void lh_describe_diff_words(const LhDiff *diff, GString *out);

/* Every quantity of every entry, for LH_FORMAT_CSV. */
LhTable *lh_diff_table(const LhDiff *diff);

/* Fields of the document. */
extern const LhField lh_diff_fields[];

/* Appends the document. */
void lh_diff_json(const LhDiff *diff, const LhStamp *stamp, GString *out);
