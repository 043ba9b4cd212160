/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses fields from command-line text. Numbers and units have the grammar and bounds of files;
 * only the error messages differ: here they name the option.
 */
#include "scenario/setting.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define RANGE_VALUES_MAX 4096

/* A field being read from @text; messages name it @option. */
typedef struct {
    const char *option;
    const LhField *field;
    const char *text;
    GError **error;
} Reader;

char *
lh_setting_option(const LhField *field)
{
    char *option = g_strconcat("--", field->name, NULL);

    g_strdelimit(option, "_", '-');
    return option;
}

const LhField *
lh_setting_find(const LhField *fields, const char *option)
{
    for (const LhField *field = fields; field->name != NULL; field++) {
        g_autofree char *name = lh_setting_option(field);

        if (strcmp(name, option) == 0)
            return field;
    }
    return NULL;
}

bool
lh_setting_is_flag(const LhField *field)
{
    return field->type == LH_FIELD_BOOL;
}

/* Optional fields of a struct come last. */
static bool
is_needed(const LhField *field)
{
    return (field->flags & LH_FIELD_REQUIRED) != 0;
}

/* "RANK:FACTOR", "TIER:NODE:FACTOR[:PART]". */
static char *
struct_placeholder(const LhField *fields)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (const LhField *field = fields; field->name != NULL; field++) {
        g_autofree char *upper = g_ascii_strup(field->name, -1);

        g_string_append_printf(text, is_needed(field) ? "%s%s" : "[%s%s]", text->len > 0 ? ":" : "",
                               upper);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char *
lh_setting_placeholder(const LhField *field)
{
    if (field->placeholder != NULL)
        return g_strdup(field->placeholder);
    switch (field->type) {
    case LH_FIELD_CHOICE:
        return g_strjoinv("|", (char **)field->choices);
    case LH_FIELD_ARRAY:
        return struct_placeholder(field->fields);
    case LH_FIELD_UINTS:
        return g_strdup("N,N");
    case LH_FIELD_STRING:
    case LH_FIELD_STRINGS:
        return g_strdup("NAME");
    case LH_FIELD_DOUBLE:
        return g_strdup("X");
    case LH_FIELD_UNIT:
        return g_strdup(field->unit == LH_UNIT_TIME ? "TIME" : "N");
    default:
        return g_strdup("N");
    }
}

static bool
fail_field(const Reader *r, const char *allowed)
{
    g_autofree char *valid = g_utf8_make_valid(r->text, -1);
    g_autofree char *shown = g_utf8_substring(valid, 0, MIN(g_utf8_strlen(valid, -1), 60));
    g_autofree char *escaped = g_strescape(shown, NULL);

    g_set_error(r->error, LH_ERROR, LH_ERROR_USAGE, "%s: \"%s\" is not allowed; allowed: %s",
                r->option, escaped, allowed);
    return false;
}

/* Fails with what a numeric field allows: "a whole number, 1 to 64". */
static bool
fail_number(const Reader *r, const char *noun)
{
    g_autofree char *bounds = lh_field_bounds(r->field);
    g_autofree char *allowed =
        bounds == NULL ? g_strdup(noun) : g_strdup_printf("%s, %s", noun, bounds);

    return fail_field(r, allowed);
}

static bool
read_uint(const Reader *r, void *value)
{
    guint64 number;

    if (!g_ascii_string_to_unsigned(r->text, 10, 0, G_MAXUINT64, &number, NULL) ||
        !lh_field_allows(r->field, (double)number))
        return fail_number(r, "a whole number");
    *(uint64_t *)value = number;
    return true;
}

static bool
read_double(const Reader *r, void *value)
{
    char *end = NULL;
    double number;

    /* g_ascii_strtod would also take hexadecimal, "inf" and "nan". */
    if (r->text[0] == '\0' || r->text[strspn(r->text, "0123456789.eE+-")] != '\0')
        return fail_number(r, "a number");
    number = g_ascii_strtod(r->text, &end);
    if (*end != '\0' || !isfinite(number) || !lh_field_allows(r->field, number))
        return fail_number(r, "a number");
    *(double *)value = number;
    return true;
}

static bool
read_unit(const Reader *r, void *value)
{
    union {
        uint64_t count;
        double rate;
        LhTime time_ps;
    } number;
    const bool seconds = (r->field->flags & LH_FIELD_SECONDS) != 0;
    const bool bare = seconds && r->text[strspn(r->text, "0123456789.")] == '\0';
    g_autofree char *text = g_strconcat(r->text, bare ? "s" : "", NULL);
    g_autofree char *expected =
        g_strconcat(lh_unit_expected(r->field->unit), seconds ? ", or 60 for seconds" : "", NULL);
    double base;

    if (!lh_unit_parse(text, r->field->unit, &number, NULL))
        return fail_number(r, expected);
    switch (r->field->unit) {
    case LH_UNIT_COUNT:
    case LH_UNIT_BYTES:
        base = (double)number.count;
        break;
    case LH_UNIT_TIME:
        base = (double)number.time_ps / (double)LH_PS_PER_S;
        break;
    default:
        base = number.rate;
        break;
    }
    if (!lh_field_allows(r->field, base))
        return fail_number(r, expected);
    memcpy(value, &number, sizeof(uint64_t));
    return true;
}

static bool
read_choice(const Reader *r, void *value)
{
    const char *near;
    g_autofree char *all = NULL;
    g_autofree char *allowed = NULL;

    for (int i = 0; r->field->choices[i] != NULL; i++) {
        if (strcmp(r->field->choices[i], r->text) == 0) {
            *(int *)value = i;
            return true;
        }
    }
    near = lh_nearest_word(r->text, r->field->choices);
    all = g_strjoinv(", ", (char **)r->field->choices);
    allowed = near == NULL ? g_strdup(all) : g_strdup_printf("%s; did you mean %s?", all, near);
    return fail_field(r, allowed);
}

static bool
read_string(const Reader *r, void *value)
{
    if (r->text[0] == '\0')
        return fail_field(r, "non-empty text");
    if (!g_utf8_validate(r->text, -1, NULL))
        return fail_field(r, "UTF-8 text");
    g_free(*(char **)value);
    *(char **)value = g_strdup(r->text);
    return true;
}

static bool
append_string(const Reader *r, void *value)
{
    GPtrArray **list = value;

    if (r->text[0] == '\0' || !g_utf8_validate(r->text, -1, NULL))
        return fail_field(r, "a name");
    if (*list == NULL)
        *list = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(*list, g_strdup(r->text));
    return true;
}

/* "4,2": replaces the whole list. */
static bool
read_uints(const Reader *r, void *value)
{
    g_auto(GStrv) pieces = g_strsplit(r->text, ",", -1);
    g_autoptr(GArray) numbers = g_array_new(FALSE, TRUE, sizeof(uint64_t));
    GArray **list = value;

    for (char **piece = pieces; *piece != NULL; piece++) {
        guint64 number;

        if (!g_ascii_string_to_unsigned(*piece, 10, 0, G_MAXUINT64, &number, NULL))
            break;
        g_array_append_val(numbers, number);
    }
    if (numbers->len != g_strv_length(pieces) || !lh_field_allows(r->field, numbers->len)) {
        g_autofree char *form = lh_setting_placeholder(r->field);
        g_autofree char *allowed = g_strdup_printf("whole numbers, %s", form);

        return fail_field(r, allowed);
    }
    g_clear_pointer(list, g_array_unref);
    *list = g_steal_pointer(&numbers);
    return true;
}

static bool append_struct(const Reader *r, void *value);

static bool
read_field(const Reader *r, void *value)
{
    switch (r->field->type) {
    case LH_FIELD_UINT:
        return read_uint(r, value);
    case LH_FIELD_DOUBLE:
        return read_double(r, value);
    case LH_FIELD_UNIT:
        return read_unit(r, value);
    case LH_FIELD_CHOICE:
        return read_choice(r, value);
    case LH_FIELD_STRING:
        return read_string(r, value);
    case LH_FIELD_STRINGS:
        return append_string(r, value);
    case LH_FIELD_UINTS:
        return read_uints(r, value);
    case LH_FIELD_ARRAY:
        return append_struct(r, value);
    case LH_FIELD_BOOL:
        *(bool *)value = true;
        return true;
    default:
        g_assert_not_reached();
    }
}

static bool
append_struct(const Reader *r, void *value)
{
    GArray **list = value;
    g_autofree void *element = g_malloc0(r->field->element_size);
    g_autofree char *form = struct_placeholder(r->field->fields);
    g_autofree char *valid = g_utf8_make_valid(r->text, -1);
    g_auto(GStrv) pieces = g_strsplit(r->text, ":", -1);
    const guint given = g_strv_length(pieces);
    guint count = 0, needed = 0;

    for (; r->field->fields[count].name != NULL; count++)
        needed += is_needed(&r->field->fields[count]);
    if (given < needed || given > count)
        return fail_field(r, form);
    if (r->field->element_init != NULL)
        r->field->element_init(element);
    for (guint i = 0; i < given; i++) {
        const LhField *field = &r->field->fields[i];
        g_autofree char *option = g_strdup_printf("%s %s: %s", r->option, valid, field->name);
        const Reader piece = { option, field, pieces[i], r->error };

        if (!read_field(&piece, (char *)element + field->offset))
            return false;
    }
    if (*list == NULL)
        *list = g_array_new(FALSE, TRUE, (guint)r->field->element_size);
    g_array_append_vals(*list, element, 1);
    return true;
}

bool
lh_setting_parse(const LhField *field, const char *text, void *out, GError **error)
{
    g_autofree char *option = lh_setting_option(field);
    const Reader reader = { option, field, text, error };

    return read_field(&reader, (char *)out + field->offset);
}

/* ---- back to text ---- */

static char *
unit_text(const LhField *field, const void *value)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];

    switch (field->unit) {
    case LH_UNIT_COUNT:
    case LH_UNIT_BYTES:
        return g_strdup_printf("%" G_GUINT64_FORMAT, *(const uint64_t *)value);
    case LH_UNIT_TIME:
        return g_strdup_printf("%" G_GINT64_FORMAT "ps", *(const LhTime *)value);
    case LH_UNIT_BANDWIDTH:
    case LH_UNIT_PORT:
        return g_strconcat(lh_double_to_text(*(const double *)value, exact), "B/s", NULL);
    case LH_UNIT_FLOPS:
        return g_strconcat(lh_double_to_text(*(const double *)value, exact), "FLOP/s", NULL);
    }
    g_assert_not_reached();
}

static char *
value_text(const LhField *field, const void *value)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];

    switch (field->type) {
    case LH_FIELD_BOOL:
        return NULL;
    case LH_FIELD_UINT:
        return g_strdup_printf("%" G_GUINT64_FORMAT, *(const uint64_t *)value);
    case LH_FIELD_DOUBLE:
        return g_strdup(lh_double_to_text(*(const double *)value, exact));
    case LH_FIELD_UNIT:
        return unit_text(field, value);
    case LH_FIELD_CHOICE:
        return g_strdup(field->choices[*(const int *)value]);
    case LH_FIELD_STRING:
        return g_strdup(*(char *const *)value);
    default:
        g_assert_not_reached();
    }
}

static char *
uints_text(const GArray *numbers)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < numbers->len; i++)
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "",
                               g_array_index(numbers, uint64_t, i));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* "RANK:FACTOR". */
static char *
struct_text(const LhField *array, const char *element)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (const LhField *field = array->fields; field->name != NULL; field++) {
        g_autofree char *value = value_text(field, element + field->offset);

        if (!lh_field_is_absent(array, field, element))
            g_string_append_printf(text, "%s%s", text->len > 0 ? ":" : "", value);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

GPtrArray *
lh_setting_texts(const LhField *field, const void *in)
{
    const void *value = (const char *)in + field->offset;
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);

    if (field->type == LH_FIELD_STRINGS) {
        const GPtrArray *list = *(GPtrArray *const *)value;

        for (guint i = 0; i < list->len; i++)
            g_ptr_array_add(texts, g_strdup(g_ptr_array_index(list, i)));
    } else if (field->type == LH_FIELD_ARRAY) {
        const GArray *list = *(GArray *const *)value;

        for (guint i = 0; i < list->len; i++)
            g_ptr_array_add(texts, struct_text(field, list->data + (gsize)i * field->element_size));
    } else if (field->type == LH_FIELD_UINTS) {
        g_ptr_array_add(texts, uints_text(*(GArray *const *)value));
    } else if (field->type != LH_FIELD_BOOL || *(const bool *)value) {
        g_ptr_array_add(texts, value_text(field, value));
    }
    return texts;
}

void
lh_setting_reset(const LhField *field, void *out)
{
    void *value = (char *)out + field->offset;

    if (field->type == LH_FIELD_STRINGS)
        g_clear_pointer((GPtrArray **)value, g_ptr_array_unref);
    else if (field->type == LH_FIELD_ARRAY || field->type == LH_FIELD_UINTS)
        g_clear_pointer((GArray **)value, g_array_unref);
}

/* "24" or "1-16". */
static bool
append_range(const char *piece, GArray *values)
{
    g_auto(GStrv) ends = g_strsplit(piece, "-", 2);
    guint64 first, last;

    if (ends[0] == NULL || !g_ascii_string_to_unsigned(ends[0], 10, 1, G_MAXUINT32, &first, NULL))
        return false;
    last = first;
    if (ends[1] != NULL &&
        !g_ascii_string_to_unsigned(ends[1], 10, first, G_MAXUINT32, &last, NULL))
        return false;
    if (last - first >= RANGE_VALUES_MAX - values->len)
        return false;
    for (uint64_t value = first; value <= last; value++)
        g_array_append_val(values, value);
    return true;
}

GArray *
lh_setting_parse_ranges(const char *option, const char *text, GError **error)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_auto(GStrv) pieces = g_strsplit(text, ",", -1);

    for (char **piece = pieces; *piece != NULL; piece++) {
        const Reader reader = { option, NULL, text, error };

        if (!append_range(*piece, values)) {
            fail_field(&reader, "numbers of ranks and rising ranges, such as 1-16,24,25");
            return NULL;
        }
    }
    if (values->len == 0) {
        const Reader reader = { option, NULL, text, error };

        fail_field(&reader, "numbers of ranks and rising ranges, such as 1-16,24,25");
        return NULL;
    }
    return g_steal_pointer(&values);
}
