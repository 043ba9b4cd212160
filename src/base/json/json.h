/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON reader: line and column for every error, no duplicate keys, no trailing garbage,
 * exact 64-bit integers. A file format is a table of fields (LhField): the same table decodes the
 * file into a C struct, words every error, and prints the format's JSON Schema, so the three cannot
 * disagree. A document in memory is its text and the tree that the library cJSON builds of it, 64
 * bytes per value.
 *
 * Messages read "path:line:column: error: ...", LH_ERROR_INPUT.
 */
#pragma once

#include "base/json/json_decode.h"

typedef struct _LhJson LhJson;

#define LH_JSON_BYTES_MAX (UINT64_C(256) << 20) /* per document */

/* Parses @text (need not be NUL-terminated). @name appears in messages. Caller frees with
 * lh_json_free. */
LhJson *lh_json_parse(const char *name, const char *text, gsize length, GError **error);

/* Reads and parses a file. A file that cannot be read is LH_ERROR_INPUT; lack of memory is
 * LH_ERROR_RUNTIME. */
LhJson *lh_json_load(const char *path, GError **error);

/* The same for files written by Python: NaN, Infinity and -Infinity are scanned as values, which no
 * field accepts. lh_json_check_strict() checks that there are none. */
LhJson *lh_json_parse_python(const char *name, const char *text, gsize length, GError **error);
LhJson *lh_json_load_python(const char *path, GError **error);
bool lh_json_check_strict(const LhJson *json, GError **error);

void lh_json_free(LhJson *json);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhJson, lh_json_free)

/* SHA-256 of the text as read, in lower-case hex; borrowed until free. */
const char *lh_json_sha256(const LhJson *json);

/* True if there is a value other than null at @path, e.g. "node.nics.count",
 * "ranks[3].ops[17].after". */
bool lh_json_has(const LhJson *json, const char *path);

/* Kind of the value at @path: '{', '[', '"', '0' (a number), 't', 'f', 'n' (null), or 'I' and 'N'
 * of lh_json_parse_python(); NUL: none. */
char lh_json_kind(const LhJson *json, const char *path);

/* The value at @path as written, without white space; "" if there is none. Caller frees. */
char *lh_json_text(const LhJson *json, const char *path);

/* The string at @path; NULL if there is none. Caller frees. */
char *lh_json_string_at(const LhJson *json, const char *path);

/* The keys of the object at @path ("": the document), in order; empty if there is no such object.
 * Of char *; caller unrefs. */
GPtrArray *lh_json_keys(const LhJson *json, const char *path);

/*
 * Sets @error to "name:line:column: error: <message>" at the value at @path (or its nearest
 * existing parent), for rules that involve several fields. Returns false, so callers can return it.
 */
bool lh_json_error(const LhJson *json, const char *path, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
