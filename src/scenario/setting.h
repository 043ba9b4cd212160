/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One field of a table, set from a text as it stands on a command line. The table that decodes a
 * file also makes the options: the option is the field's name with '-' for '_', so the two cannot
 * drift.
 *
 * Lists take one element for each time that the option is given. An element that is a struct is
 * written as its fields, joined by ':' in the order of the table ("RANK:FACTOR"). A list of numbers
 * is one text, "4,2".
 */
#pragma once

#include "base/json/field.h"

/* "--seq-length" of "seq_length"; caller frees. */
char *lh_setting_option(const LhField *field);

/* The field whose option @option is ("--seq-length"), or NULL. */
const LhField *lh_setting_find(const LhField *fields, const char *option);

/* True for a field that stands alone on the command line (LH_FIELD_BOOL). */
bool lh_setting_is_flag(const LhField *field);

/* The word for the option's value in help: "N", "bf16|fp16|fp32", "RANK:FACTOR"; caller frees. */
char *lh_setting_placeholder(const LhField *field);

/*
 * Sets the field in @out from @text (NULL for a flag). Replaces a string, appends to a list. On
 * failure @out is untouched and @error (LH_ERROR_USAGE) names the option, the text and what is
 * allowed.
 */
bool lh_setting_parse(const LhField *field, const char *text, void *out, GError **error);

/*
 * The texts that lh_setting_parse() reads the field's value in @in from, one for each time that the
 * option is given; for a flag that is set, one that is NULL. Of types that are options. Caller
 * unrefs.
 */
GPtrArray *lh_setting_texts(const LhField *field, const void *in);

/* Empties a list field; nothing for other types. */
void lh_setting_reset(const LhField *field, void *out);

/* The first and last numbers of a list of ranges, "1-16,24,25": caller unrefs the GArray of
 * uint64_t. */
GArray *lh_setting_parse_ranges(const char *option, const char *text, GError **error);
