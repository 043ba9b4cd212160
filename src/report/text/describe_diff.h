/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two results beside each other, for people and for machines (longhaul.diff/1).
 */
#pragma once

#include "report/data/result_json.h"
#include "report/diff/diff.h"

/* What was asked that is not the same; NULL: nothing. Caller frees, as of all tables here. */
LhTable *lh_describe_diff_case(const LhDiff *diff);

/* Times and places before and after, and the part that changed most. */
LhTable *lh_describe_diff_entries(const LhDiff *diff);

/* What changed of the entry of that name; NULL: nothing. */
LhTable *lh_describe_diff_parts(const LhDiff *diff, const char *name);

/* Sentences: who wins and why, and what is worse by more than is tolerated. */
void lh_describe_diff_words(const LhDiff *diff, GString *out);

/* Every quantity of every entry: for LH_FORMAT_CSV. */
LhTable *lh_diff_table(const LhDiff *diff);

/* Of the document. */
extern const LhField lh_diff_fields[];

/* Appends the document. */
void lh_diff_json(const LhDiff *diff, const LhStamp *stamp, GString *out);
