/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/field.h"

#include <math.h>
#include <string.h>

static bool
has_bounds(const LhField *field)
{
    return field->min != 0 || field->max != 0;
}

bool
lh_field_allows(const LhField *field, double value)
{
    return !has_bounds(field) ||
           (value >= field->min && (field->max < field->min || value <= field->max));
}

static bool
has_upper_bound(const LhField *field)
{
    return field->max >= field->min && !isinf(field->max);
}

/* A bound in the field's unit, as text. */
static char *
format_bound(const LhField *field, double bound)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    if (field->type == LH_FIELD_UNIT) {
        switch (field->unit) {
        case LH_UNIT_BYTES:
            return lh_format_bytes((uint64_t)bound);
        case LH_UNIT_TIME:
            return lh_format_time((LhTime)(bound * (double)LH_PS_PER_S + 0.5));
        case LH_UNIT_BANDWIDTH:
        case LH_UNIT_PORT:
            return lh_format_bandwidth(bound);
        case LH_UNIT_FLOPS:
            return lh_format_flops(bound);
        case LH_UNIT_COUNT:
            break;
        }
    }
    return g_strdup(lh_double_to_text(bound, buffer));
}

char *
lh_field_bounds(const LhField *field)
{
    g_autofree char *low = NULL;
    g_autofree char *high = NULL;

    if (!has_bounds(field))
        return NULL;
    if (!isinf(field->min))
        low = format_bound(field, field->min);
    if (has_upper_bound(field))
        high = format_bound(field, field->max);
    if (low != NULL && high != NULL)
        return g_strdup_printf("%s to %s", low, high);
    if (low != NULL)
        return g_strdup_printf("at least %s", low);
    return high == NULL ? NULL : g_strdup_printf("at most %s", high);
}

static const char *
time_expected(LhFieldType type)
{
    if (type == LH_FIELD_UINTS)
        return "an array of numbers of seconds";
    if (type == LH_FIELD_COUNTS)
        return "an object of numbers of seconds";
    return "a number of seconds with at most 12 decimals";
}

char *
lh_field_expected(const LhField *field)
{
    static const char *const words[] = {
        [LH_FIELD_STRING] = "a string",
        [LH_FIELD_UINT] = "a non-negative integer",
        [LH_FIELD_INT] = "an integer",
        [LH_FIELD_DOUBLE] = "a number",
        [LH_FIELD_BOOL] = "true or false",
        [LH_FIELD_OBJECT] = "an object",
        [LH_FIELD_ARRAY] = "an array of objects",
        [LH_FIELD_LATER] = "an array of objects",
        [LH_FIELD_VALUES] = "an array of values",
        [LH_FIELD_UINTS] = "an array of non-negative integers",
        [LH_FIELD_DOUBLES] = "an array of numbers",
        [LH_FIELD_STRINGS] = "an array of strings",
        [LH_FIELD_WIDE] = "an integer",
        [LH_FIELD_TRUTH] = "true or false",
        [LH_FIELD_COUNTS] = "an object of non-negative integers",
        [LH_FIELD_INLINE] = "an object",
        [LH_FIELD_POINTER] = "an object",
        [LH_FIELD_POINTERS] = "an array of objects",
        [LH_FIELD_MEMBERS] = "an object",
        [LH_FIELD_LITERAL] = "a number",
        [LH_FIELD_ROWS] = "an array of objects",
    };

    if (field->type == LH_FIELD_UNIT)
        return g_strdup(lh_unit_expected(field->unit));
    if ((field->flags & LH_FIELD_PICOSECONDS) != 0)
        return g_strdup(time_expected(field->type));
    if (field->type == LH_FIELD_CHOICE) {
        g_autofree char *choices = g_strjoinv(", ", (char **)field->choices);

        return g_strdup_printf("one of %s", choices);
    }
    if ((field->flags & LH_FIELD_OR_ONE) != 0)
        return g_strdup("a string or an array of strings");
    return g_strdup(words[field->type]);
}

gsize
lh_field_number_size(const LhField *field)
{
    switch (field->type) {
    case LH_FIELD_UINT:
    case LH_FIELD_INT:
    case LH_FIELD_DOUBLE:
    case LH_FIELD_UNIT:
        return sizeof(uint64_t);
    case LH_FIELD_WIDE:
        return sizeof(LhWide);
    case LH_FIELD_CHOICE:
    case LH_FIELD_TRUTH:
        return sizeof(int);
    case LH_FIELD_BOOL:
        return sizeof(bool);
    default:
        return 0;
    }
}

bool
lh_field_is_absent(const LhField *array, const LhField *field, const void *element)
{
    g_autofree char *initial = g_malloc0(array->element_size);
    const gsize size = field->type == LH_FIELD_CHOICE ? sizeof(int) : sizeof(uint64_t);

    if ((field->flags & LH_FIELD_REQUIRED) != 0)
        return false;
    if (array->element_init != NULL)
        array->element_init(initial);
    return memcmp((const char *)element + field->offset, initial + field->offset, size) == 0;
}
