/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming JSON writer: no document in memory, doubles that round-trip, two-space indentation.
 * Misuse (a key outside an object, an unclosed array) is a programming error and aborts.
 */
#pragma once

#include "base/wide.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct _LhJsonWriter LhJsonWriter;

/* Appends to @out, which stays the caller's. @compact writes on one line. */
LhJsonWriter *lh_jsonw_new(GString *out, bool compact);
/* Makes rates, bandwidths and times keep all significant digits from now on
 * (lh_unit_text_fine()). */
void lh_jsonw_fine(LhJsonWriter *w);
bool lh_jsonw_is_fine(const LhJsonWriter *w);
/* Ends the document (all containers must be closed) and frees the writer. NULL is allowed. */
void lh_jsonw_free(LhJsonWriter *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhJsonWriter, lh_jsonw_free)

/* @key is the member name inside an object and NULL inside an array or at the top. */
void lh_jsonw_object_begin(LhJsonWriter *w, const char *key);
void lh_jsonw_object_end(LhJsonWriter *w);
void lh_jsonw_array_begin(LhJsonWriter *w, const char *key);
void lh_jsonw_array_end(LhJsonWriter *w);
void lh_jsonw_string(LhJsonWriter *w, const char *key, const char *value); /* NULL writes null */
void lh_jsonw_uint(LhJsonWriter *w, const char *key, uint64_t value);
/* Writes nothing if @value is the default of an absent key. */
void lh_jsonw_uint_unless(LhJsonWriter *w, const char *key, uint64_t value, uint64_t usual);
/* Writes @number, which is in JSON syntax, as it is. */
void lh_jsonw_number(LhJsonWriter *w, const char *key, const char *number);
/* Writes all digits of a total. */
void lh_jsonw_wide(LhJsonWriter *w, const char *key, LhWide value);
void lh_jsonw_int(LhJsonWriter *w, const char *key, int64_t value);
void lh_jsonw_double(LhJsonWriter *w, const char *key, double value);
/* The same; NaN and infinity, which JSON does not have, are written as null. */
void lh_jsonw_double_or_null(LhJsonWriter *w, const char *key, double value);
void lh_jsonw_bool(LhJsonWriter *w, const char *key, bool value);
/* Writes an exact number of picoseconds as decimal seconds: 1500000000000 -> 1.5. */
void lh_jsonw_seconds(LhJsonWriter *w, const char *key, LhWide time_ps);
