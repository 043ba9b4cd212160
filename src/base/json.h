/*
 * Strict JSON reading. cJSON parses; this wrapper adds what it leaves out: the line and column of
 * every value, duplicate keys, trailing garbage, exact 64-bit integers, strict number and string
 * grammar. A file format is a table of fields (LhField): the same table decodes the file into a C
 * struct, words every error, and prints the format's JSON Schema, so the three cannot disagree.
 *
 * Messages read "path:line:column: error: ...", LH_ERROR_INPUT.
 */
#pragma once

#include "base/units.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum {
    LH_FIELD_STRING, /* char *, owned by the struct */
    LH_FIELD_UINT,   /* uint64_t; a JSON integer, exact over the whole range */
    LH_FIELD_INT,    /* int64_t; likewise */
    LH_FIELD_DOUBLE, /* double */
    LH_FIELD_BOOL,   /* bool */
    LH_FIELD_UNIT,   /* uint64_t, double or LhTime by `unit`; a string with a unit, or for COUNT and
                        BYTES also a plain JSON integer */
    LH_FIELD_CHOICE, /* int: index into `choices` */
    LH_FIELD_OBJECT, /* the nested struct itself, decoded by `fields` */
    LH_FIELD_ARRAY,  /* GArray * of `element_size` structs decoded by `fields`; owned */
    LH_FIELD_UINTS,  /* GArray * of uint64_t; owned */
    LH_FIELD_STRINGS, /* GPtrArray * of char *, owned */
} LhFieldType;

typedef enum {
    LH_FIELD_REQUIRED = 1 << 0,
    LH_FIELD_OR_NULL = 1 << 1, /* JSON null counts as absent (Hugging Face writes it) */
    LH_FIELD_OR_ONE = 1 << 2,  /* STRINGS: a string alone is a list of one */
} LhFieldFlags;

/* One field of a JSON object. A table ends with a zero entry ({ .name = NULL }). */
typedef struct _LhField LhField;
struct _LhField {
    const char *name;
    LhFieldType type;
    size_t offset; /* of the value in the struct being filled */
    unsigned flags;
    LhUnit unit;                /* LH_FIELD_UNIT */
    double min;                 /* inclusive bounds for numbers and units, in base units (TIME: */
    double max;                 /* seconds); STRING: lengths; arrays: element counts. Both 0: none;
                                   max below min: no upper bound */
    const char *const *choices; /* LH_FIELD_CHOICE: NULL-terminated */
    const LhField *fields;      /* LH_FIELD_OBJECT, LH_FIELD_ARRAY */
    size_t element_size;        /* LH_FIELD_ARRAY */
    void (*element_init)(void *e); /* LH_FIELD_ARRAY: sets an element's defaults; NULL: all zero */
    const char *description;       /* one sentence, for the schema */
};

typedef struct _LhJson LhJson;

/* Parses @text (need not be NUL-terminated). @name appears in messages. Caller frees with
 * lh_json_free. */
LhJson *lh_json_parse(const char *name, const char *text, gsize length, GError **error);

/* Reads and parses a file; a file that cannot be read is LH_ERROR_INPUT. Limit: 256 MiB. */
LhJson *lh_json_load(const char *path, GError **error);

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

/* True if a value (not null) stands at @path, e.g. "node.nics.count", "ranks[3].ops[17].after". */
bool lh_json_has(const LhJson *json, const char *path);

/*
 * Sets @error to "name:line:column: error: <message>" at the value at @path (or the nearest parent
 * that exists), for rules that tie several fields together. Returns false, so callers can return
 * it.
 */
bool lh_json_error(const LhJson *json, const char *path, GError **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Frees what lh_json_decode allocated inside @out (not @out itself) and zeroes those pointers. */
void lh_json_clear(const LhField *fields, void *out);

/* JSON Schema (draft 2020-12) of @fields; caller frees. @id is e.g. "longhaul.device/1". */
char *lh_json_schema(const char *id, const char *title, const LhField *fields);
