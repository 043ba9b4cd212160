/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of data files: writing a decoded struct back by its field table, and inputs
 * broken in one place.
 */
#pragma once

#include "base/error.h"
#include "base/files/data_files.h"
#include "base/json/json.h"
#include "base/json/json_writer.h"
#include "run_tests.h"

#include <string.h>

/* --- round trip --------------------------------------------------------------------------------
 */

static inline void write_fields(LhJsonWriter *w, const LhJson *original, const char *path,
                                const LhField *fields, const void *values);

static inline void
write_unit(LhJsonWriter *w, const LhField *field, const void *value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *text = NULL;

    switch (field->unit) {
    case LH_UNIT_COUNT:
    case LH_UNIT_BYTES:
        lh_jsonw_uint(w, field->name, *(const uint64_t *)value);
        return;
    case LH_UNIT_TIME:
        text = g_strdup_printf("%" G_GINT64_FORMAT "ps", *(const LhTime *)value);
        break;
    case LH_UNIT_BANDWIDTH:
    case LH_UNIT_PORT:
        g_ascii_formatd(number, sizeof(number), "%.3f", *(const double *)value);
        text = g_strconcat(number, "B/s", NULL);
        break;
    case LH_UNIT_FLOPS:
        g_ascii_formatd(number, sizeof(number), "%.3f", *(const double *)value);
        text = g_strconcat(number, "FLOP/s", NULL);
        break;
    }
    lh_jsonw_string(w, field->name, text);
}

static inline void
write_elements(LhJsonWriter *w, const LhJson *original, const char *path, const LhField *field,
               const GArray *elements)
{
    lh_jsonw_array_begin(w, field->name);
    for (guint i = 0; i < elements->len; i++) {
        g_autofree char *element = g_strdup_printf("%s[%u]", path, i);

        lh_jsonw_object_begin(w, NULL);
        write_fields(w, original, element, field->fields,
                     elements->data + (gsize)i * field->element_size);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static inline void
write_numbers(LhJsonWriter *w, const LhField *field, const GArray *numbers)
{
    lh_jsonw_array_begin(w, field->name);
    for (guint i = 0; i < numbers->len; i++) {
        if (field->type == LH_FIELD_UINTS)
            lh_jsonw_uint(w, NULL, g_array_index(numbers, uint64_t, i));
        else
            lh_jsonw_double(w, NULL, g_array_index(numbers, double, i));
    }
    lh_jsonw_array_end(w);
}

static inline void
write_field(LhJsonWriter *w, const LhJson *original, const char *path, const LhField *field,
            const void *value)
{
    switch (field->type) {
    case LH_FIELD_STRING:
        lh_jsonw_string(w, field->name, *(char *const *)value);
        return;
    case LH_FIELD_UINT:
        lh_jsonw_uint(w, field->name, *(const uint64_t *)value);
        return;
    case LH_FIELD_DOUBLE:
        lh_jsonw_double(w, field->name, *(const double *)value);
        return;
    case LH_FIELD_BOOL:
        lh_jsonw_bool(w, field->name, *(const bool *)value);
        return;
    case LH_FIELD_UNIT:
        write_unit(w, field, value);
        return;
    case LH_FIELD_CHOICE:
        lh_jsonw_string(w, field->name, field->choices[*(const int *)value]);
        return;
    case LH_FIELD_OBJECT:
        lh_jsonw_object_begin(w, field->name);
        write_fields(w, original, path, field->fields, value);
        lh_jsonw_object_end(w);
        return;
    case LH_FIELD_STRINGS:
        lh_jsonw_array_begin(w, field->name);
        for (guint i = 0; i < (*(GPtrArray *const *)value)->len; i++)
            lh_jsonw_string(w, NULL, g_ptr_array_index(*(GPtrArray *const *)value, i));
        lh_jsonw_array_end(w);
        return;
    case LH_FIELD_ARRAY:
        write_elements(w, original, path, field, *(GArray *const *)value);
        return;
    case LH_FIELD_UINTS:
    case LH_FIELD_DOUBLES:
        write_numbers(w, field, *(GArray *const *)value);
        return;
    default:
        ck_abort_msg("%s: a field type that no data file uses", path);
    }
}

/* Writes the fields present in the original. */
static inline void
write_fields(LhJsonWriter *w, const LhJson *original, const char *path, const LhField *fields,
             const void *values)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        g_autofree char *inner = g_strdup_printf("%s%s%s", path, *path == '\0' ? "" : ".", f->name);

        if (lh_json_has(original, inner))
            write_field(w, original, inner, f, (const char *)values + f->offset);
    }
}

static inline char *
write_struct(const LhJson *original, const LhField *fields, const void *values)
{
    GString *text = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(text, false);

    lh_jsonw_object_begin(w, NULL);
    write_fields(w, original, "", fields, values);
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    return g_string_free(text, FALSE);
}

/*
 * Decodes the file `path`, writes it, decodes that and writes it again: both texts must be equal,
 * and no field of the file may be lost.
 */
static inline void
check_round_trip(const char *path, const LhField *fields, size_t struct_size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhJson) json = lh_json_load(path, &error);
    g_autoptr(LhJson) again = NULL;
    g_autofree void *first = g_malloc0(struct_size);
    g_autofree void *second = g_malloc0(struct_size);
    g_autofree char *once = NULL;
    g_autofree char *twice = NULL;

    ck_assert_msg(json != NULL && lh_json_decode(json, fields, first, false, &error), "%s",
                  error != NULL ? error->message : path);
    once = write_struct(json, fields, first);
    again = lh_json_parse("written", once, strlen(once), &error);
    ck_assert_msg(again != NULL && lh_json_decode(again, fields, second, false, &error), "%s",
                  error != NULL ? error->message : path);
    twice = write_struct(json, fields, second);
    ck_assert_str_eq(once, twice);
    lh_json_clear(fields, first);
    lh_json_clear(fields, second);
}

/* --- broken inputs -----------------------------------------------------------------------------
 */

/* A valid text in which `old` is replaced by `new`, and the error message expected for it. */
typedef struct {
    const char *old;
    const char *new;
    const char *message;
} BrokenInput;

/* Returns the text with the first `old` replaced; fails if there is none. Caller frees. */
static inline char *
break_text(const char *text, const BrokenInput *broken)
{
    const char *at = strstr(text, broken->old);

    ck_assert_msg(at != NULL, "\"%s\" is not in the text", broken->old);
    return g_strdup_printf("%.*s%s%s", (int)(at - text), text, broken->new,
                           at + strlen(broken->old));
}

static inline void
check_message(const GError *error, const char *expected)
{
    ck_assert_msg(error != NULL, "no error instead of: %s", expected);
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
    ck_assert_str_eq(error->message, expected);
}
