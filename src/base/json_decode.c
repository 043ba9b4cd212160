/*
 * Decoding of JSON objects by tables of fields, with a message for everything that can be wrong.
 * Integers are read from the text: cJSON holds doubles only.
 */
#include "base/error.h"
#include "base/json.h"
#include "base/json_private.h"

#include <math.h>
#include <string.h>

typedef struct {
    const LhJson *json;
    GString *path; /* of the value being decoded, for messages */
    bool allow_unknown;
    GError **error;
} Decoder;

/* The text of a number; it ends where the number does. */
static const char *
text_of(const Decoder *d, const cJSON *item)
{
    return d->json->text + lh_json_place(d->json, item)->value_offset;
}

/* Sets the error at the value; returns false. */
static G_GNUC_PRINTF(3, 4) bool fail(Decoder *d, const cJSON *item, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    return lh_json_fail_at(d->json->name, d->json->text, lh_json_place(d->json, item)->value_offset,
                           d->error, "%s", message);
}

typedef bool (*DecodeFunc)(Decoder *d, const cJSON *item, const LhField *field, void *value);

static bool decode_object(Decoder *d, const cJSON *object, const LhField *fields, void *out);

static char *
describe_found(const Decoder *d, const cJSON *item)
{
    if (cJSON_IsString(item)) {
        g_autofree char *shown =
            g_utf8_substring(item->valuestring, 0, MIN(g_utf8_strlen(item->valuestring, -1), 40));
        g_autofree char *escaped = g_strescape(shown, NULL);

        return g_strdup_printf("the string \"%s%s\"", escaped,
                               strlen(shown) < strlen(item->valuestring) ? "..." : "");
    }
    if (cJSON_IsNumber(item)) {
        const char *text = text_of(d, item);

        return g_strdup_printf("the number %.*s", (int)strspn(text, "+-.0123456789eE"), text);
    }
    if (cJSON_IsObject(item))
        return g_strdup("an object");
    if (cJSON_IsArray(item))
        return g_strdup("an array");
    return g_strdup(cJSON_IsNull(item) ? "null" : cJSON_IsTrue(item) ? "true" : "false");
}

static bool
fail_type(Decoder *d, const cJSON *item, const char *expected)
{
    g_autofree char *found = describe_found(d, item);

    return fail(d, item, "\"%s\" must be %s; found %s", d->path->str, expected, found);
}

static bool
fail_field_type(Decoder *d, const cJSON *item, const LhField *field)
{
    g_autofree char *expected = lh_field_expected(field);

    return fail_type(d, item, expected);
}

/* `what` is empty, or the measure that is bounded: " length", " count". */
static bool
check_range(Decoder *d, const cJSON *item, const LhField *field, double value, const char *measure)
{
    g_autofree char *found = NULL;
    g_autofree char *allowed = NULL;

    if (lh_field_allows(field, value))
        return true;
    allowed = lh_field_bounds(field);
    if (measure != NULL)
        return fail(d, item, "\"%s\" has %g %s; allowed: %s", d->path->str, value, measure,
                    allowed);
    found = describe_found(d, item);
    return fail(d, item, "\"%s\" is out of range: found %s; allowed: %s", d->path->str, found,
                allowed);
}

/* The exact integer that a JSON number stands for, as sign and magnitude. */
typedef enum {
    INTEGER_OK,
    INTEGER_FRACTION,  /* 1.5, 1e-3 */
    INTEGER_TOO_LARGE, /* beyond 64 bits */
} IntegerResult;

static bool
append_digit(uint64_t *value, unsigned digit)
{
    return g_uint64_checked_mul(value, *value, 10) && g_uint64_checked_add(value, *value, digit);
}

/*
 * `text` obeys the JSON grammar and has at most 60 characters. The number is digits * 10^exponent;
 * zeros at its end wait in `zeros` until a digit follows them, so that 1.000 and 1000e-3 are
 * integers.
 */
static IntegerResult
read_integer(const char *text, bool *negative, uint64_t *magnitude)
{
    gint64 exponent = 0;
    int zeros = 0;
    bool fraction = false;
    const char *p = text;
    bool fits = true;

    *magnitude = 0;
    *negative = *p == '-';
    if (*negative)
        p++;
    for (; g_ascii_isdigit(*p) || *p == '.'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        exponent -= fraction ? 1 : 0;
        zeros++;
        if (*p == '0')
            continue;
        for (; zeros > 1; zeros--)
            fits = fits && append_digit(magnitude, 0);
        fits = fits && append_digit(magnitude, (unsigned)(*p - '0'));
        zeros = 0;
    }
    if (*p == 'e' || *p == 'E')
        exponent += CLAMP(g_ascii_strtoll(p + 1, NULL, 10), -1000000, 1000000);
    exponent += zeros;
    if (fits && *magnitude == 0)
        return INTEGER_OK;
    if (exponent < 0)
        return INTEGER_FRACTION;
    for (; fits && exponent > 0; exponent--)
        fits = append_digit(magnitude, 0);
    return fits ? INTEGER_OK : INTEGER_TOO_LARGE;
}

static bool
fail_integer_range(Decoder *d, const cJSON *item, const LhField *field, const char *widest)
{
    g_autofree char *found = describe_found(d, item);
    g_autofree char *bounds = lh_field_bounds(field);

    return fail(d, item, "\"%s\" is out of range: found %s; allowed: %s", d->path->str, found,
                bounds != NULL ? bounds : widest);
}

static bool
decode_uint(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    bool negative;
    uint64_t magnitude;
    IntegerResult result;

    if (!cJSON_IsNumber(item))
        return fail_field_type(d, item, field);
    result = read_integer(text_of(d, item), &negative, &magnitude);
    if (result == INTEGER_FRACTION)
        return fail_field_type(d, item, field);
    if (result == INTEGER_TOO_LARGE || (negative && magnitude > 0))
        return fail_integer_range(d, item, field, "0 to 18446744073709551615");
    if (!check_range(d, item, field, (double)magnitude, NULL))
        return false;
    *(uint64_t *)value = magnitude;
    return true;
}

static bool
decode_int(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    bool negative;
    uint64_t magnitude;
    int64_t number;
    IntegerResult result;

    if (!cJSON_IsNumber(item))
        return fail_field_type(d, item, field);
    result = read_integer(text_of(d, item), &negative, &magnitude);
    if (result == INTEGER_FRACTION)
        return fail_field_type(d, item, field);
    if (result == INTEGER_TOO_LARGE || magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return fail_integer_range(d, item, field, "-9223372036854775808 to 9223372036854775807");
    number = negative && magnitude > 0 ? -(int64_t)(magnitude - 1) - 1 : (int64_t)magnitude;
    if (!check_range(d, item, field, (double)number, NULL))
        return false;
    *(int64_t *)value = number;
    return true;
}

static bool
decode_double(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    double number;

    if (!cJSON_IsNumber(item))
        return fail_field_type(d, item, field);
    number = g_ascii_strtod(text_of(d, item), NULL);
    if (!check_range(d, item, field, number, NULL))
        return false;
    *(double *)value = number;
    return true;
}

static bool
decode_bool(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    if (!cJSON_IsBool(item))
        return fail_field_type(d, item, field);
    *(bool *)value = cJSON_IsTrue(item);
    return true;
}

static bool
decode_string(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    if (!cJSON_IsString(item))
        return fail_field_type(d, item, field);
    if (!check_range(d, item, field, (double)g_utf8_strlen(item->valuestring, -1), "characters"))
        return false;
    *(char **)value = g_strdup(item->valuestring);
    return true;
}

static bool
decode_unit(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    const bool plain_allowed = field->unit == LH_UNIT_COUNT || field->unit == LH_UNIT_BYTES;
    g_autoptr(GError) reason = NULL;
    union {
        uint64_t count;
        double rate;
        LhTime time_ps;
    } parsed;
    double number;

    if (plain_allowed && cJSON_IsNumber(item))
        return decode_uint(d, item, field, value);
    if (!cJSON_IsString(item))
        return fail_field_type(d, item, field);
    if (!lh_unit_parse(item->valuestring, field->unit, &parsed, &reason))
        return fail(d, item, "\"%s\": %s", d->path->str, reason->message);
    if (plain_allowed)
        number = (double)parsed.count;
    else if (field->unit == LH_UNIT_TIME)
        number = (double)parsed.time_ps / (double)LH_PS_PER_S;
    else
        number = parsed.rate;
    if (!check_range(d, item, field, number, NULL))
        return false;
    memcpy(value, &parsed, sizeof(parsed));
    return true;
}

static bool
decode_choice(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    g_autofree char *expected = NULL;
    g_autofree char *advice = NULL;
    const char *nearest;

    if (!cJSON_IsString(item))
        return fail_field_type(d, item, field);
    for (int i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], item->valuestring) == 0) {
            *(int *)value = i;
            return true;
        }
    }
    nearest = lh_nearest_word(item->valuestring, field->choices);
    expected = lh_field_expected(field);
    if (nearest != NULL)
        advice = g_strdup_printf("%s (did you mean \"%s\"?)", expected, nearest);
    return fail_type(d, item, advice != NULL ? advice : expected);
}

static bool
decode_nested(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    if (!cJSON_IsObject(item))
        return fail_field_type(d, item, field);
    return decode_object(d, item, field->fields, value);
}

/*
 * Runs `decode` on every element of an array with the path extended by its index. Storage is sized
 * first, so that elements do not move while they are decoded.
 */
static bool
decode_elements(Decoder *d, const cJSON *array, const LhField *field, DecodeFunc decode,
                GArray *elements)
{
    const gsize path_length = d->path->len;
    const guint size = g_array_get_element_size(elements);
    guint i = 0;

    g_array_set_size(elements, (guint)cJSON_GetArraySize(array));
    for (const cJSON *item = array->child; item != NULL; item = item->next, i++) {
        void *element = elements->data + (gsize)i * size;

        g_string_append_printf(d->path, "[%u]", i);
        if (field->element_init != NULL)
            field->element_init(element);
        if (!decode(d, item, field, element))
            return false;
        g_string_truncate(d->path, path_length);
    }
    return true;
}

static bool
check_array(Decoder *d, const cJSON *item, const LhField *field)
{
    if (!cJSON_IsArray(item))
        return fail_field_type(d, item, field);
    return check_range(d, item, field, cJSON_GetArraySize(item), "elements");
}

static bool
decode_array(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    LhField element = *field;
    GArray *elements;

    if (!check_array(d, item, field))
        return false;
    elements = g_array_new(FALSE, TRUE, (guint)field->element_size);
    *(GArray **)value = elements; /* at once: a failure below clears what has been decoded */
    element.type = LH_FIELD_OBJECT;
    return decode_elements(d, item, &element, decode_nested, elements);
}

static bool
decode_uints(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    const LhField element = { .name = field->name, .type = LH_FIELD_UINT };
    GArray *numbers;

    if (!check_array(d, item, field))
        return false;
    numbers = g_array_new(FALSE, TRUE, sizeof(uint64_t));
    *(GArray **)value = numbers;
    return decode_elements(d, item, &element, decode_uint, numbers);
}

static bool
decode_strings(Decoder *d, const cJSON *item, const LhField *field, void *value)
{
    const gsize path_length = d->path->len;
    const bool one = (field->flags & LH_FIELD_OR_ONE) != 0 && cJSON_IsString(item);
    guint i = 0;
    GPtrArray *strings;

    if (!one && !check_array(d, item, field))
        return false;
    strings = g_ptr_array_new_with_free_func(g_free);
    *(GPtrArray **)value = strings;
    if (one) {
        g_ptr_array_add(strings, g_strdup(item->valuestring));
        return true;
    }
    for (const cJSON *string = item->child; string != NULL; string = string->next, i++) {
        g_string_append_printf(d->path, "[%u]", i);
        if (!cJSON_IsString(string))
            return fail_type(d, string, "a string");
        g_ptr_array_add(strings, g_strdup(string->valuestring));
        g_string_truncate(d->path, path_length);
    }
    return true;
}

static const DecodeFunc decode_funcs[] = {
    [LH_FIELD_STRING] = decode_string,   [LH_FIELD_UINT] = decode_uint,
    [LH_FIELD_INT] = decode_int,         [LH_FIELD_DOUBLE] = decode_double,
    [LH_FIELD_BOOL] = decode_bool,       [LH_FIELD_UNIT] = decode_unit,
    [LH_FIELD_CHOICE] = decode_choice,   [LH_FIELD_OBJECT] = decode_nested,
    [LH_FIELD_ARRAY] = decode_array,     [LH_FIELD_UINTS] = decode_uints,
    [LH_FIELD_STRINGS] = decode_strings,
};

static const LhField *
find_field(const LhField *fields, const char *name)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        if (strcmp(f->name, name) == 0)
            return f;
    }
    return NULL;
}

/* "in node.nics" or "at the top level". */
static char *
describe_place(const Decoder *d)
{
    if (d->path->len == 0)
        return g_strdup("at the top level");
    return g_strdup_printf("in \"%s\"", d->path->str);
}

static bool
fail_unknown(Decoder *d, const cJSON *item, const LhField *fields)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *place = describe_place(d);
    g_autofree char *escaped = g_strescape(item->string, NULL);
    g_autofree char *allowed = NULL;
    g_autofree char *advice = NULL;
    const char *nearest;

    for (const LhField *f = fields; f->name != NULL; f++)
        g_ptr_array_add(names, (gpointer)f->name);
    g_ptr_array_add(names, NULL);
    nearest = lh_nearest_word(item->string, (const char *const *)names->pdata);
    if (nearest != NULL)
        advice = g_strdup_printf("did you mean \"%s\"? ", nearest);
    allowed = g_strjoinv(", ", (char **)names->pdata);
    return lh_json_fail_at(d->json->name, d->json->text, lh_json_place(d->json, item)->key_offset,
                           d->error, "unknown field \"%.60s\" %s; %sallowed: %s", escaped, place,
                           advice != NULL ? advice : "", allowed);
}

static bool
decode_member(Decoder *d, const cJSON *item, const LhField *field, void *out)
{
    const gsize path_length = d->path->len;

    if (cJSON_IsNull(item) && (field->flags & LH_FIELD_OR_NULL) != 0)
        return true;
    g_string_append_printf(d->path, "%s%s", path_length > 0 ? "." : "", field->name);
    if (!decode_funcs[field->type](d, item, field, (char *)out + field->offset))
        return false;
    g_string_truncate(d->path, path_length);
    return true;
}

static bool
check_required(Decoder *d, const cJSON *object, const LhField *fields)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, f->name);
        g_autofree char *place = NULL;
        g_autofree char *expected = NULL;

        if ((f->flags & LH_FIELD_REQUIRED) == 0)
            continue;
        if (item != NULL && !(cJSON_IsNull(item) && (f->flags & LH_FIELD_OR_NULL) != 0))
            continue;
        place = describe_place(d);
        expected = lh_field_expected(f);
        return fail(d, object, "missing field \"%s\" %s; it must be %s", f->name, place, expected);
    }
    return true;
}

static bool
decode_object(Decoder *d, const cJSON *object, const LhField *fields, void *out)
{
    for (const cJSON *item = object->child; item != NULL; item = item->next) {
        const LhField *field = find_field(fields, item->string);

        if (field == NULL) {
            if (!d->allow_unknown)
                return fail_unknown(d, item, fields);
        } else if (!decode_member(d, item, field, out)) {
            return false;
        }
    }
    return check_required(d, object, fields);
}

/* The whole of one call: `d->path` is where `object` stands, and is freed. */
static bool
decode_and_free(Decoder *d, const cJSON *object, const LhField *fields, void *out)
{
    g_autoptr(GString) path = d->path;
    g_autofree char *found = NULL;
    bool ok;

    if (cJSON_IsObject(object)) {
        ok = decode_object(d, object, fields, out);
    } else {
        found = describe_found(d, object);
        ok = path->len == 0
                 ? fail(d, object, "the top level must be an object; found %s", found)
                 : fail(d, object, "\"%s\" must be an object; found %s", path->str, found);
    }
    if (!ok)
        lh_json_clear(fields, out);
    return ok;
}

bool
lh_json_decode(const LhJson *json, const LhField *fields, void *out, bool allow_unknown,
               GError **error)
{
    Decoder d = { json, g_string_new(NULL), allow_unknown, error };

    return decode_and_free(&d, json->root, fields, out);
}

bool
lh_json_decode_at(const LhJson *json, const char *path, const LhField *fields, void *out,
                  bool allow_unknown, GError **error)
{
    const cJSON *object = lh_json_find(json, path, NULL);
    Decoder d = { json, NULL, allow_unknown, error };

    if (object == NULL || cJSON_IsNull(object))
        return false;
    d.path = g_string_new(path);
    return decode_and_free(&d, object, fields, out);
}

static void
clear_array(const LhField *fields, GArray **array)
{
    if (*array == NULL)
        return;
    for (guint i = 0; fields != NULL && i < (*array)->len; i++)
        lh_json_clear(fields, (*array)->data + (gsize)i * g_array_get_element_size(*array));
    g_clear_pointer(array, g_array_unref);
}

void
lh_json_clear(const LhField *fields, void *out)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        void *value = (char *)out + f->offset;

        switch (f->type) {
        case LH_FIELD_STRING:
            g_clear_pointer((char **)value, g_free);
            break;
        case LH_FIELD_STRINGS:
            g_clear_pointer((GPtrArray **)value, g_ptr_array_unref);
            break;
        case LH_FIELD_UINTS:
            clear_array(NULL, value);
            break;
        case LH_FIELD_ARRAY:
            clear_array(f->fields, value);
            break;
        case LH_FIELD_OBJECT:
            lh_json_clear(f->fields, value);
            break;
        default: /* owns nothing */
            break;
        }
    }
}
