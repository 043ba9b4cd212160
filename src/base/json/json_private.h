/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to base/json*.c: the document, the strict scan of its text, the tree that cJSON builds of
 * it, and decoding of values. After the scan the text is known to be well-formed, so cJSON, which
 * is lenient, sees only valid JSON. Every value of the tree knows its position.
 */
#pragma once

#include "base/json/json.h"

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_JSON_DEPTH_MAX 64

/* The tree that cJSON builds of a text; zero: none yet. */
typedef struct {
    cJSON *root;
    GPtrArray *blocks; /* memory blocks, filled with values in order */
    char *last;        /* the last value taken from the last block; */
    char *unused;      /* the free memory after it, */
    gsize left;        /* and its bytes */
} LhJsonTree;

struct _LhJson {
    char *name;
    char *text; /* NUL-terminated */
    gsize length;
    bool python; /* NaN, Infinity and -Infinity may be in it */
    char *sha256;
    LhJsonTree *tree; /* of the whole document; empty if it was freed */
};

/*
 * Checks that @text is one JSON document by RFC 8259 and the limits above; lh_json_check_keys()
 * checks for duplicate keys. @text is NUL-terminated at @length. On failure @error (LH_ERROR_INPUT)
 * has the place. @python: allow NaN, Infinity and -Infinity.
 */
bool lh_json_scan(const char *name, const char *text, gsize length, bool python, GError **error);

/* Sets @error to "name:line:column: error: <message>" for byte @offset of @text; returns false. */
bool lh_json_fail_at(const char *name, const char *text, gsize offset, GError **error,
                     const char *format, ...) G_GNUC_PRINTF(5, 6);

/* --- the tree -----------------------------------------------------------------------------------
 */

/* Reads the value at byte @at of the text, which has been scanned, into an empty @tree. Returns the
 * first byte after the value. */
gsize lh_json_tree_read(const LhJson *json, gsize at, LhJsonTree *tree);
void lh_json_tree_clear(LhJsonTree *tree);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhJsonTree, lh_json_tree_clear)

/* Checks that no object has duplicate keys. */
bool lh_json_check_keys(const LhJson *json, GError **error);

/* The tree of the whole document; rebuilds it if it was freed. */
const cJSON *lh_json_root(const LhJson *json);

/* Frees the tree until lh_json_root() is called again; no other thread may be using it. */
void lh_json_forget(const LhJson *json);

/* The position of @value, and of its key, in the text that it was read from. */
gsize lh_json_place(const cJSON *value);
gsize lh_json_key_place(const char *text, const cJSON *value);

/* The first byte at or after @at that is not white space, and the first after the value at @at, in
 * scanned text. */
gsize lh_json_skip_space(const char *text, gsize at);
gsize lh_json_end(const char *text, gsize at);

/* Finds the value at @path; if it does not exist, @value is the last one on the way. */
bool lh_json_find(const LhJson *json, const char *path, const cJSON **value);

/* --- decoding -----------------------------------------------------------------------------------
 */

/* One call of lh_json_decode() and its like. */
typedef struct {
    const LhJson *json;
    GString *path; /* of the value being decoded, for messages */
    bool allow_unknown;
    bool later; /* elements are left for lh_json_decode_next() */
    GError **error;
} LhJsonDecoder;

/* The text from @value on; it extends beyond the value. */
static inline const char *
lh_json_text_of(const LhJsonDecoder *d, const cJSON *value)
{
    return d->json->text + lh_json_place(value);
}

/* Sets the error at the value; returns false. */
bool lh_json_fail_value(LhJsonDecoder *d, const cJSON *value, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Describes the value at @item for messages: "the number 12", "an object". Caller frees. */
char *lh_json_describe_found(const LhJsonDecoder *d, const cJSON *item);

/* Set the error of a value that is not @expected, or not of the field's type; return false. */
bool lh_json_fail_type(LhJsonDecoder *d, const cJSON *item, const char *expected);
bool lh_json_fail_field_type(LhJsonDecoder *d, const cJSON *item, const LhField *field);

/* Checks the field's bounds. @measure is what they limit ("elements"), or NULL for the value
 * itself. */
bool lh_json_check_range(LhJsonDecoder *d, const cJSON *item, const LhField *field, double value,
                         const char *measure);

/* Store the value @item into @value, which has the field's type. */
bool lh_json_decode_uint(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);
bool lh_json_decode_int(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);
bool lh_json_decode_double(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);
bool lh_json_decode_bool(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);
bool lh_json_decode_string(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);
bool lh_json_decode_unit(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);
bool lh_json_decode_choice(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);
/* WIDE; and UINT and INT, if they are LH_FIELD_PICOSECONDS. */
bool lh_json_decode_sum(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);
