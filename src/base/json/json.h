/*
 * Strict JSON reading: the line and column of every error, no key twice, no trailing garbage, exact
 * 64-bit integers. A file format is a table of fields (LhField): the same table decodes the file
 * into a C struct, words every error, and prints the format's JSON Schema, so the three cannot
 * disagree. A document in memory is its text; values are read from there.
 *
 * Messages read "path:line:column: error: ...", LH_ERROR_INPUT.
 */
#pragma once

#include "base/json/field.h"

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

/*
 * Decodes the root object into @out by @fields. Absent optional fields leave @out as the caller
 * preset it (presets must not own memory; strings and arrays start NULL). With @allow_unknown,
 * unknown keys are skipped (formats that are not ours); otherwise they are errors with a
 * suggestion. On failure everything allocated is released and @out is zeroed from the caller's
 * point of view: call nothing.
 */
bool lh_json_decode(const LhJson *json, const LhField *fields, void *out, bool allow_unknown,
                    GError **error);

/* As lh_json_decode, for the object at @path ("text_config"); false with no error set if absent. */
bool lh_json_decode_at(const LhJson *json, const char *path, const LhField *fields, void *out,
                       bool allow_unknown, GError **error);

/*
 * Decodes the next element of an array of the field @field (LH_FIELD_LATER or LH_FIELD_VALUES),
 * which must have one, and moves @later behind it. @path is that of the array, for messages. The
 * caller clears @element with lh_json_clear(field->fields, element); on failure there is nothing in
 * it to clear.
 */
bool lh_json_decode_next(const LhJson *json, const LhField *field, const char *path,
                         LhFieldLater *later, void *element, GError **error);

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

/* Where two documents differ, and the values there as texts, the first bytes of them. Owned. */
typedef struct {
    char *path, *a, *b;
} LhJsonDifference;

/*
 * Whether two documents have the same values under the same keys in the same order; white space
 * does not count, nor how a number is written, nor what @counts says so of. If not, the first
 * @difference, by path.
 */
bool lh_json_same(const LhJson *a, const LhJson *b, bool (*counts)(const char *path),
                  LhJsonDifference *difference);
void lh_json_difference_clear(LhJsonDifference *difference);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhJsonDifference, lh_json_difference_clear)

/* Frees what lh_json_decode allocated inside @out (not @out itself) and zeroes those pointers. */
void lh_json_clear(const LhField *fields, void *out);

/* JSON Schema (draft 2020-12) of @fields; caller frees. @id is e.g. "longhaul.device/1". */
char *lh_json_schema(const char *id, const char *title, const LhField *fields);
