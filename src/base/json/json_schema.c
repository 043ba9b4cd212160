/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Schema (draft 2020-12) of a table of fields. Bounds of values with a unit are stated in the
 * description: a schema cannot compare "64MiB" with a number.
 */
#include "base/json/json_schema.h"

#include "base/json/json_writer.h"

#include <math.h>

static void write_object(LhJsonWriter *w, const LhField *fields);
static void write_value(LhJsonWriter *w, const LhField *field);

static void
write_types(LhJsonWriter *w, const char *first, const char *second, unsigned flags)
{
    const bool nullable = (flags & LH_FIELD_OR_NULL) != 0;

    if (second == NULL && !nullable) {
        lh_jsonw_string(w, "type", first);
        return;
    }
    lh_jsonw_array_begin(w, "type");
    lh_jsonw_string(w, NULL, first);
    if (second != NULL)
        lh_jsonw_string(w, NULL, second);
    if (nullable)
        lh_jsonw_string(w, NULL, "null");
    lh_jsonw_array_end(w);
}

static void
write_bounds(LhJsonWriter *w, const LhField *field, const char *low, const char *high)
{
    if (field->min == 0 && field->max == 0)
        return;
    if (!isinf(field->min))
        lh_jsonw_double(w, low, field->min);
    if (field->max >= field->min && !isinf(field->max))
        lh_jsonw_double(w, high, field->max);
}

static const char *
type_of_number(const LhField *field)
{
    const bool whole = (field->flags & LH_FIELD_PICOSECONDS) == 0;

    return whole && field->type != LH_FIELD_DOUBLE ? "integer" : "number";
}

static void
write_number(LhJsonWriter *w, const LhField *field)
{
    write_types(w, type_of_number(field), NULL, field->flags);
    write_bounds(w, field, "minimum", "maximum");
    if (field->type == LH_FIELD_UINT && field->min == 0 && field->max == 0)
        lh_jsonw_uint(w, "minimum", 0);
}

static void
write_unit(LhJsonWriter *w, const LhField *field)
{
    const bool plain = field->unit == LH_UNIT_COUNT || field->unit == LH_UNIT_BYTES;
    g_autofree char *pattern = lh_unit_pattern(field->unit);

    write_types(w, "string", plain ? "integer" : NULL, field->flags);
    lh_jsonw_string(w, "pattern", pattern);
    if (!plain)
        return;
    if (field->min == 0 && field->max == 0)
        lh_jsonw_uint(w, "minimum", 0);
    else
        write_bounds(w, field, "minimum", "maximum");
}

static void
write_choices(LhJsonWriter *w, const LhField *field)
{
    lh_jsonw_array_begin(w, "enum");
    for (const char *const *c = field->choices; *c != NULL; c++)
        lh_jsonw_string(w, NULL, *c);
    if ((field->flags & LH_FIELD_OR_NULL) != 0)
        lh_jsonw_string(w, NULL, NULL);
    lh_jsonw_array_end(w);
}

static void
write_array(LhJsonWriter *w, const LhField *field)
{
    write_types(w, "array", (field->flags & LH_FIELD_OR_ONE) != 0 ? "string" : NULL, field->flags);
    write_bounds(w, field, "minItems", "maxItems");
    lh_jsonw_object_begin(w, "items");
    if (field->type == LH_FIELD_UINTS) {
        lh_jsonw_string(w, "type", type_of_number(field));
        lh_jsonw_uint(w, "minimum", 0);
    } else if (field->type == LH_FIELD_DOUBLES) {
        lh_jsonw_string(w, "type", "number");
    } else if (field->type == LH_FIELD_STRINGS) {
        lh_jsonw_string(w, "type", "string");
    } else if (field->type == LH_FIELD_VALUES) {
        write_value(w, field->fields);
    } else {
        lh_jsonw_string(w, "type", "object");
        write_object(w, field->fields);
    }
    lh_jsonw_object_end(w);
}

static void
write_string(LhJsonWriter *w, const LhField *field)
{
    if (field->choices != NULL) {
        write_choices(w, field);
        return;
    }
    write_types(w, "string", NULL, field->flags);
    write_bounds(w, field, "minLength", "maxLength");
}

static void
write_counts(LhJsonWriter *w, const LhField *field)
{
    write_types(w, "object", NULL, field->flags);
    lh_jsonw_bool(w, "additionalProperties", false);
    lh_jsonw_object_begin(w, "properties");
    for (const char *const *c = field->choices; *c != NULL; c++) {
        lh_jsonw_object_begin(w, *c);
        lh_jsonw_string(w, "type", type_of_number(field));
        lh_jsonw_uint(w, "minimum", 0);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_object_end(w);
}

static void
write_members(LhJsonWriter *w, const LhField *field)
{
    write_types(w, "object", NULL, field->flags);
    if (field->fields == NULL)
        return;
    lh_jsonw_object_begin(w, "additionalProperties");
    lh_jsonw_array_begin(w, "anyOf");
    for (const LhField *f = field->fields; f->name != NULL; f++) {
        lh_jsonw_object_begin(w, NULL);
        write_value(w, f);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

/* Writes the keywords for the values that @field allows. */
static void
write_value(LhJsonWriter *w, const LhField *field)
{
    switch (field->type) {
    case LH_FIELD_STRING:
        write_string(w, field);
        break;
    case LH_FIELD_COUNTS:
        write_counts(w, field);
        break;
    case LH_FIELD_UINT:
    case LH_FIELD_INT:
    case LH_FIELD_WIDE:
    case LH_FIELD_DOUBLE:
        write_number(w, field);
        break;
    case LH_FIELD_LITERAL:
        write_types(w, "number", NULL, field->flags);
        break;
    case LH_FIELD_ROWS:
        write_types(w, "array", NULL, field->flags);
        break;
    case LH_FIELD_MEMBERS:
        write_members(w, field);
        break;
    case LH_FIELD_BOOL:
    case LH_FIELD_TRUTH:
        write_types(w, "boolean", NULL, field->flags);
        break;
    case LH_FIELD_UNIT:
        write_unit(w, field);
        break;
    case LH_FIELD_CHOICE:
        write_choices(w, field);
        break;
    case LH_FIELD_OBJECT:
    case LH_FIELD_INLINE:
    case LH_FIELD_POINTER:
        write_types(w, "object", NULL, field->flags);
        write_object(w, field->fields);
        break;
    case LH_FIELD_ARRAY:
    case LH_FIELD_UINTS:
    case LH_FIELD_DOUBLES:
    case LH_FIELD_STRINGS:
    case LH_FIELD_LATER:
    case LH_FIELD_VALUES:
    case LH_FIELD_POINTERS:
        write_array(w, field);
        break;
    }
}

static void
write_field(LhJsonWriter *w, const LhField *field)
{
    lh_jsonw_object_begin(w, field->name);
    if (field->description != NULL)
        lh_jsonw_string(w, "description", field->description);
    write_value(w, field);
    lh_jsonw_object_end(w);
}

static void
write_required(LhJsonWriter *w, const LhField *fields)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        if (f->type == LH_FIELD_INLINE)
            write_required(w, f->fields);
        else if ((f->flags & LH_FIELD_REQUIRED) != 0)
            lh_jsonw_string(w, NULL, f->name);
    }
}

static void
write_properties(LhJsonWriter *w, const LhField *fields)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        if (f->type == LH_FIELD_INLINE)
            write_properties(w, f->fields);
        else
            write_field(w, f);
    }
}

/* Writes the keywords of an object except its type. */
static void
write_object(LhJsonWriter *w, const LhField *fields)
{
    lh_jsonw_bool(w, "additionalProperties", false);
    lh_jsonw_array_begin(w, "required");
    write_required(w, fields);
    lh_jsonw_array_end(w);
    lh_jsonw_object_begin(w, "properties");
    write_properties(w, fields);
    lh_jsonw_object_end(w);
}

char *
lh_json_schema(const char *id, const char *title, const LhField *fields)
{
    GString *out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, false);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    lh_jsonw_string(w, "$id", id);
    lh_jsonw_string(w, "title", title);
    lh_jsonw_string(w, "type", "object");
    write_object(w, fields);
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    return g_string_free(out, FALSE);
}
