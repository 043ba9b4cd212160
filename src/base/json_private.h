/*
 * Private to base/json*.c: the document, the strict scan that runs before cJSON, places in the
 * text.
 */
#pragma once

#include "base/json.h"

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_JSON_BYTES_MAX (UINT64_C(256) << 20)
#define LH_JSON_DEPTH_MAX 64

/* Byte offsets of a value and of its key (the value's own outside objects). */
typedef struct {
    guint32 key_offset;
    guint32 value_offset;
} LhJsonPlace;

/*
 * Checks that @text is one JSON document by RFC 8259 and the limits above, and appends one place
 * per value to @places, parents before children, in the order of the text. @text is NUL-terminated
 * at
 * @length. On failure @error (LH_ERROR_INPUT) names the place.
 */
bool lh_json_scan(const char *name, const char *text, gsize length, GArray *places, GError **error);

/* Sets @error to "name:line:column: error: <message>" for byte @offset of @text; returns false. */
bool lh_json_fail_at(const char *name, const char *text, gsize offset, GError **error,
                     const char *format, ...) G_GNUC_PRINTF(5, 6);

struct _LhJson {
    char *name;
    char *text; /* NUL-terminated */
    gsize length;
    char *sha256;
    cJSON *root;
    GArray *places;      /* of LhJsonPlace, in the order of the text */
    GHashTable *indices; /* cJSON * -> index into places */
};

/* The place of an item of this document. */
const LhJsonPlace *lh_json_place(const LhJson *json, const cJSON *item);

/* The value at @path, or NULL; @nearest (may be NULL) receives the last item on the way. */
const cJSON *lh_json_find(const LhJson *json, const char *path, const cJSON **nearest);
