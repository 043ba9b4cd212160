/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON reading: the line and column of every error, no key twice, no trailing garbage, exact
 * 64-bit integers. A file format is a table of fields (LhField): the same table decodes the file
 * into a C struct, words every error, and prints the format's JSON Schema, so the three cannot
 * disagree. A document in memory is its text and, with 64 bytes for each value, the tree that the
 * library cJSON makes of it.
 *
 * Messages read "path:line:column: error: ...", LH_ERROR_INPUT.
 */
#pragma once

#include "base/json/json_decode.h"

typedef struct _LhJson LhJson;

#define LH_JSON_BYTES_MAX (UINT64_C(256) << 20) /* of a document */

/* Parses @text (need not be NUL-terminated). @name appears in messages. Caller frees with
 * lh_json_free. */
LhJson *lh_json_parse(const char *name, const char *text, gsize length, GError **error);

/* Reads and parses a file; a file that cannot be read is LH_ERROR_INPUT, without memory for it
 * LH_ERROR_RUNTIME. */
LhJson *lh_json_load(const char *path, GError **error);

/* The same for files that Python wrote: NaN, Infinity and -Infinity are values that no field takes.
 * lh_json_check_strict() says whether there are none after all. */
LhJson *lh_json_parse_python(const char *name, const char *text, gsize length, GError **error);
LhJson *lh_json_load_python(const char *path, GError **error);
bool lh_json_check_strict(const LhJson *json, GError **error);

void lh_json_free(LhJson *json);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhJson, lh_json_free)

/* SHA-256 of the text as read, in lower-case hex; borrowed until free. */
const char *lh_json_sha256(const LhJson *json);

/* True if a value (not null) stands at @path, e.g. "node.nics.count", "ranks[3].ops[17].after". */
bool lh_json_has(const LhJson *json, const char *path);

/* What stands at @path: '{', '[', '"', '0' (a number), 't', 'f', 'n' (null), or 'I' and 'N' of
 * lh_json_parse_python(); NUL: nothing. */
char lh_json_kind(const LhJson *json, const char *path);

/* The value at @path as it is written, without white space; "" if there is none. Caller frees. */
char *lh_json_text(const LhJson *json, const char *path);

/* The string at @path; NULL if there is none. Caller frees. */
char *lh_json_string_at(const LhJson *json, const char *path);

/* The keys of the object at @path ("": of the document), in their order; none if there is none. Of
 * char *; caller unrefs. */
GPtrArray *lh_json_keys(const LhJson *json, const char *path);

/*
 * Sets @error to "name:line:column: error: <message>" at the value at @path (or the nearest parent
 * that exists), for rules that tie several fields together. Returns false, so callers can return
 * it.
 */
bool lh_json_error(const LhJson *json, const char *path, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
