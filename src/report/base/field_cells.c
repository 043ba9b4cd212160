/* SPDX-License-Identifier: Apache-2.0 */
#include "report/base/field_cells.h"

#include "base/json/json_encode.h"
#include "base/units.h"

static bool
is_column(const LhField *field)
{
    return field->type != LH_FIELD_OBJECT && field->type != LH_FIELD_POINTER &&
           field->type != LH_FIELD_COUNTS;
}

static const void *
pointer_at(const void *at)
{
    return *(const void *const *)at;
}

/* ---- one cell ---- */

static void
append_whole(GString *out, const LhField *field, LhWide value)
{
    char text[LH_WIDE_TEXT_SIZE];

    g_string_append(out, (field->flags & LH_FIELD_PICOSECONDS) != 0 ? lh_wide_seconds(value, text)
                                                                    : lh_wide_text(value, text));
}

/* As on a command line, joined by semicolons: "3:2;5:1.5". */
static void append_elements(GString *out, const LhField *field, const GArray *elements);

/* Options as typed: "grid 4x8; local-kv". */
static void
append_members(GString *out, const GArray *members)
{
    for (guint i = 0; i < members->len; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? "; " : "",
                               g_array_index(members, LhFieldMember, i).text);
}

static void
append_value(GString *out, const LhField *field, const void *at)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    switch (field->type) {
    case LH_FIELD_STRING:
        g_string_append(out, pointer_at(at));
        break;
    case LH_FIELD_CHOICE:
        g_string_append(out, field->choices[*(const int *)at]);
        break;
    case LH_FIELD_UINT:
        append_whole(out, field, *(const uint64_t *)at);
        break;
    case LH_FIELD_INT:
        append_whole(out, field, *(const int64_t *)at);
        break;
    case LH_FIELD_WIDE:
        append_whole(out, field, *(const LhWide *)at);
        break;
    case LH_FIELD_DOUBLE:
        g_string_append(out, lh_double_to_text(*(const double *)at, text));
        break;
    case LH_FIELD_BOOL:
        g_string_append(out, *(const bool *)at ? "yes" : "no");
        break;
    case LH_FIELD_MEMBERS:
        append_members(out, pointer_at(at));
        break;
    case LH_FIELD_ARRAY:
        append_elements(out, field, pointer_at(at));
        break;
    default:
        g_assert_not_reached();
    }
}

static void
append_elements(GString *out, const LhField *field, const GArray *elements)
{
    for (guint i = 0; i < elements->len; i++) {
        const char *element = elements->data + (gsize)i * field->element_size;

        for (const LhField *f = field->fields; f->name != NULL; f++) {
            if (lh_field_is_absent(field, f, element))
                continue;
            if (f > field->fields)
                g_string_append_c(out, ':');
            else if (i > 0)
                g_string_append_c(out, ';');
            append_value(out, f, element + f->offset);
        }
    }
}

/* Caller frees. */
static char *
cell_text(const LhField *field, const void *of)
{
    const void *at = (const char *)of + field->offset;
    GString *out = g_string_new(NULL);

    if (!lh_json_is_none(field, at))
        append_value(out, field, at);
    return g_string_free(out, FALSE);
}

/* ---- rows ---- */

/* Optional fields have a column where they have a value. */
static bool
is_shown(const LhField *field, const void *of)
{
    return is_column(field) &&
           ((field->flags & LH_FIELD_REQUIRED) != 0 ||
            (of != NULL && !lh_json_is_none(field, (const char *)of + field->offset)));
}

void
lh_field_keys(const LhField *fields, const void *of, GPtrArray *keys)
{
    for (const LhField *field = fields; field->name != NULL; field++)
        if (is_shown(field, of))
            g_ptr_array_add(keys, g_strdup(field->name));
}

void
lh_field_texts(const LhField *fields, const void *of, GPtrArray *texts)
{
    for (const LhField *field = fields; field->name != NULL; field++)
        if (is_shown(field, of))
            g_ptr_array_add(texts, cell_text(field, of));
}

void
lh_field_columns(const LhField *fields, const void *of, LhTable *table)
{
    for (const LhField *field = fields; field->name != NULL; field++)
        if (is_shown(field, of))
            lh_table_column(table, field->name, "", NULL, false);
}

void
lh_field_cells(const LhField *fields, const void *of, LhTable *table)
{
    for (const LhField *field = fields; field->name != NULL; field++) {
        g_autofree char *text = is_shown(field, of) ? cell_text(field, of) : NULL;

        if (text != NULL)
            lh_table_cell(table, text, NULL);
    }
}

bool
lh_field_is_text(const LhField *field)
{
    switch (field->type) {
    case LH_FIELD_UINT:
    case LH_FIELD_INT:
    case LH_FIELD_WIDE:
    case LH_FIELD_DOUBLE:
        return false;
    default:
        return true;
    }
}
