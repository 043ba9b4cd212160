/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A streaming JSON writer: no document in memory, doubles that round-trip, two-space indentation.
 * Misuse (a key outside an object, an unclosed array) is a programmer error and aborts.
 */
#pragma once

#include "base/wide.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct _LhJsonWriter LhJsonWriter;

/* Appends to @out, which stays the caller's. @compact writes on one line. */
LhJsonWriter *lh_jsonw_new(GString *out, bool compact);
/* From now on rates, bandwidths and times have all digits that matter (lh_unit_text_fine()). */
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
/* Nothing, if @value is what a reader takes when the key is absent. */
void lh_jsonw_uint_unless(LhJsonWriter *w, const char *key, uint64_t value, uint64_t usual);
/* @number is one as JSON writes it; it is written as it is. */
void lh_jsonw_number(LhJsonWriter *w, const char *key, const char *number);
/* Totals, with all their digits. */
void lh_jsonw_wide(LhJsonWriter *w, const char *key, LhWide value);
void lh_jsonw_int(LhJsonWriter *w, const char *key, int64_t value);
void lh_jsonw_double(LhJsonWriter *w, const char *key, double value);
/* The same; JSON has no word for NaN and infinity: null. */
void lh_jsonw_double_or_null(LhJsonWriter *w, const char *key, double value);
void lh_jsonw_bool(LhJsonWriter *w, const char *key, bool value);
/* An exact number of picoseconds written as decimal seconds: 1500000000000 -> 1.5. */
void lh_jsonw_seconds(LhJsonWriter *w, const char *key, LhWide time_ps);
