/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to base/json*.c: the document, the strict scan of it, walking its text, and decoding
 * values. A document is its text and nothing else: a value is the offset of its first byte. After
 * the scan the text is known to be well formed, so that walking checks nothing.
 */
#pragma once

#include "base/json/json.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_JSON_DEPTH_MAX 64

struct _LhJson {
    char *name;
    char *text; /* NUL-terminated */
    gsize length;
    char *sha256;
};

/*
 * Checks that @text is one JSON document by RFC 8259 and the limits above, and that no object has a
 * key twice. @text is NUL-terminated at @length. On failure @error (LH_ERROR_INPUT) names the
 * place. @python: NaN, Infinity and -Infinity are values, too.
 */
bool lh_json_scan(const char *name, const char *text, gsize length, bool python, GError **error);

/* Sets @error to "name:line:column: error: <message>" for byte @offset of @text; returns false. */
bool lh_json_fail_at(const char *name, const char *text, gsize offset, GError **error,
                     const char *format, ...) G_GNUC_PRINTF(5, 6);

/* --- walking ------------------------------------------------------------------------------------
 */

/* A value within an object or an array. */
typedef struct {
    gsize key;   /* its key's opening quote; in an array the value itself */
    gsize value; /* its first byte */
} LhJsonItem;

/* The first byte behind the value at @value. */
gsize lh_json_skip(const char *text, gsize value);

/* The first value in the object or array at @container; false if it is empty. */
bool lh_json_first(const char *text, gsize container, LhJsonItem *item);

/* The value behind @item in the same object or array; false if there is none. */
bool lh_json_next(const char *text, LhJsonItem *item);

/* How many values are in the array at @array. */
gsize lh_json_count(const char *text, gsize array);

/* The string at @quote without its quotes and escapes. Caller frees. */
char *lh_json_string(const char *text, gsize quote);

/* Whether the string at @quote is @word. */
bool lh_json_is(const char *text, gsize quote, const char *word);

/* Negative, 0 or positive, as the string at @a stands before that at @b, is the same, or stands
 * behind it. */
int lh_json_compare(const char *text, gsize a, gsize b);

/* Whether a value stands at @path, and where: the value, or else the last one on the way. */
bool lh_json_find(const LhJson *json, const char *path, gsize *value);

/* --- decoding -----------------------------------------------------------------------------------
 */

/* One call of lh_json_decode() and its like. */
typedef struct {
    const LhJson *json;
    GString *path; /* of the value being decoded, for messages */
    bool allow_unknown;
    GError **error;
} LhJsonDecoder;

/* The text of the value at @value; it goes on behind it. */
static inline const char *
lh_json_text_of(const LhJsonDecoder *d, gsize value)
{
    return d->json->text + value;
}

/* What kinds of values begin with. */
static inline bool
lh_json_is_string(const LhJsonDecoder *d, gsize value)
{
    return *lh_json_text_of(d, value) == '"';
}

static inline bool
lh_json_is_null(const LhJsonDecoder *d, gsize value)
{
    return *lh_json_text_of(d, value) == 'n';
}

/* Sets the error at the value; returns false. */
bool lh_json_fail_value(LhJsonDecoder *d, gsize value, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* What stands at @item, for messages: "the number 12", "an object". Caller frees. */
char *lh_json_describe_found(const LhJsonDecoder *d, gsize item);

/* The error of a value of another type than @expected, or than the field has; return false. */
bool lh_json_fail_type(LhJsonDecoder *d, gsize item, const char *expected);
bool lh_json_fail_field_type(LhJsonDecoder *d, gsize item, const LhField *field);

/* Whether the field allows @value; @measure is what is bounded ("elements"), or NULL for the value
 * itself. */
bool lh_json_check_range(LhJsonDecoder *d, gsize item, const LhField *field, double value,
                         const char *measure);

/* Store the value at @item into @value, whose type is the field's. */
bool lh_json_decode_uint(LhJsonDecoder *d, gsize item, const LhField *field, void *value);
bool lh_json_decode_int(LhJsonDecoder *d, gsize item, const LhField *field, void *value);
bool lh_json_decode_double(LhJsonDecoder *d, gsize item, const LhField *field, void *value);
bool lh_json_decode_bool(LhJsonDecoder *d, gsize item, const LhField *field, void *value);
bool lh_json_decode_string(LhJsonDecoder *d, gsize item, const LhField *field, void *value);
bool lh_json_decode_unit(LhJsonDecoder *d, gsize item, const LhField *field, void *value);
bool lh_json_decode_choice(LhJsonDecoder *d, gsize item, const LhField *field, void *value);
/* WIDE; and UINT and INT, if they are LH_FIELD_PICOSECONDS. */
bool lh_json_decode_sum(LhJsonDecoder *d, gsize item, const LhField *field, void *value);
