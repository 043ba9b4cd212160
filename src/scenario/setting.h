/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets one field of a table from command-line text. The same table decodes files and defines the
 * options: an option is the field's name with '-' for '_', so the two cannot drift.
 *
 * Each use of a list option adds one element. An element that is a struct is written as its fields
 * in the order of the table, joined by ':' ("RANK:FACTOR"). A list of numbers is one text, "4,2".
 */
#pragma once

#include "base/json/field.h"

/* "--seq-length" of "seq_length"; caller frees. */
char *lh_setting_option(const LhField *field);

/* The field whose option @option is ("--seq-length"), or NULL. */
const LhField *lh_setting_find(const LhField *fields, const char *option);

/* True for an option without a value (LH_FIELD_BOOL). */
bool lh_setting_is_flag(const LhField *field);

/* Placeholder for the option's value in help: "N", "bf16|fp16|fp32", "RANK:FACTOR"; caller
 * frees. */
char *lh_setting_placeholder(const LhField *field);

/*
 * Sets the field in @out from @text (NULL for a flag). Replaces a string, appends to a list. On
 * failure @out is untouched and @error (LH_ERROR_USAGE) names the option, the text and what is
 * allowed.
 */
bool lh_setting_parse(const LhField *field, const char *text, void *out, GError **error);

/*
 * The inverse of lh_setting_parse() for the field's value in @in: one text per use of the option; a
 * flag that is set has one that is NULL. Only for types that are options. Caller unrefs.
 */
GPtrArray *lh_setting_texts(const LhField *field, const void *in);

/* Empties a list field; nothing for other types. */
void lh_setting_reset(const LhField *field, void *out);

/* Parses a list of ranges, "1-16,24,25", into the first and last number of each. Caller unrefs the
 * GArray of uint64_t. */
GArray *lh_setting_parse_ranges(const char *option, const char *text, GError **error);
