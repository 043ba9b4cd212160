/*
 * Decoding of JSON objects by tables of fields, straight from the text, with a message for
 * everything that can be wrong.
 */
#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_private.h"

#include <math.h>
#include <string.h>

typedef struct {
    const LhJson *json;
    GString *path; /* of the value being decoded, for messages */
    bool allow_unknown;
    GError **error;
} Decoder;

/* The text of the value at @value; it goes on behind it. */
static const char *
text_of(const Decoder *d, gsize value)
{
    return d->json->text + value;
}

/* What kinds of values begin with. */
static bool
is_string(const Decoder *d, gsize value)
{
    return *text_of(d, value) == '"';
}

static bool
is_number(const Decoder *d, gsize value)
{
    const char *text = text_of(d, value);

    return g_ascii_isdigit(text[*text == '-' ? 1 : 0]);
}

static bool
is_null(const Decoder *d, gsize value)
{
    return *text_of(d, value) == 'n';
}

/* Sets the error at the value; returns false. */
static G_GNUC_PRINTF(3, 4) bool fail(Decoder *d, gsize value, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    return lh_json_fail_at(d->json->name, d->json->text, value, d->error, "%s", message);
}

typedef bool (*DecodeFunc)(Decoder *d, gsize item, const LhField *field, void *value);

static bool decode_object(Decoder *d, gsize object, const LhField *fields, void *out);

static char *
describe_found(const Decoder *d, gsize item)
{
    const char *text = text_of(d, item);

    if (is_string(d, item)) {
        g_autofree char *string = lh_json_string(d->json->text, item);
        g_autofree char *shown = g_utf8_substring(string, 0, MIN(g_utf8_strlen(string, -1), 40));
        g_autofree char *escaped = g_strescape(shown, NULL);

        return g_strdup_printf("the string \"%s%s\"", escaped,
                               strlen(shown) < strlen(string) ? "..." : "");
    }
    if (is_number(d, item))
        return g_strdup_printf("the number %.*s", (int)strspn(text, "+-.0123456789eE"), text);
    if (*text == '{' || *text == '[')
        return g_strdup(*text == '{' ? "an object" : "an array");
    return g_strndup(text, strspn(text, "-truefalsnINity"));
}

static bool
fail_type(Decoder *d, gsize item, const char *expected)
{
    g_autofree char *found = describe_found(d, item);

    return fail(d, item, "\"%s\" must be %s; found %s", d->path->str, expected, found);
}

static bool
fail_field_type(Decoder *d, gsize item, const LhField *field)
{
    g_autofree char *expected = lh_field_expected(field);

    return fail_type(d, item, expected);
}

/* `what` is empty, or the measure that is bounded: " length", " count". */
static bool
check_range(Decoder *d, gsize item, const LhField *field, double value, const char *measure)
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
fail_integer_range(Decoder *d, gsize item, const LhField *field, const char *widest)
{
    g_autofree char *found = describe_found(d, item);
    g_autofree char *bounds = lh_field_bounds(field);

    return fail(d, item, "\"%s\" is out of range: found %s; allowed: %s", d->path->str, found,
                bounds != NULL ? bounds : widest);
}

static bool
decode_uint(Decoder *d, gsize item, const LhField *field, void *value)
{
    bool negative;
    uint64_t magnitude;
    IntegerResult result;

    if (!is_number(d, item))
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
decode_int(Decoder *d, gsize item, const LhField *field, void *value)
{
    bool negative;
    uint64_t magnitude;
    int64_t number;
    IntegerResult result;

    if (!is_number(d, item))
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
decode_double(Decoder *d, gsize item, const LhField *field, void *value)
{
    double number;

    if (!is_number(d, item))
        return fail_field_type(d, item, field);
    number = g_ascii_strtod(text_of(d, item), NULL);
    if (!check_range(d, item, field, number, NULL))
        return false;
    *(double *)value = number;
    return true;
}

static bool
decode_bool(Decoder *d, gsize item, const LhField *field, void *value)
{
    const char first = *text_of(d, item);

    if (first != 't' && first != 'f')
        return fail_field_type(d, item, field);
    *(bool *)value = first == 't';
    return true;
}

static bool
decode_string(Decoder *d, gsize item, const LhField *field, void *value)
{
    g_autofree char *string = NULL;

    if (!is_string(d, item))
        return fail_field_type(d, item, field);
    string = lh_json_string(d->json->text, item);
    if (!check_range(d, item, field, (double)g_utf8_strlen(string, -1), "characters"))
        return false;
    *(char **)value = g_steal_pointer(&string);
    return true;
}

static bool
decode_unit(Decoder *d, gsize item, const LhField *field, void *value)
{
    const bool plain_allowed = field->unit == LH_UNIT_COUNT || field->unit == LH_UNIT_BYTES;
    g_autoptr(GError) reason = NULL;
    g_autofree char *string = NULL;
    union {
        uint64_t count;
        double rate;
        LhTime time_ps;
    } parsed;
    double number;

    if (plain_allowed && is_number(d, item))
        return decode_uint(d, item, field, value);
    if (!is_string(d, item))
        return fail_field_type(d, item, field);
    string = lh_json_string(d->json->text, item);
    if (!lh_unit_parse(string, field->unit, &parsed, &reason))
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
decode_choice(Decoder *d, gsize item, const LhField *field, void *value)
{
    g_autofree char *expected = NULL;
    g_autofree char *advice = NULL;
    g_autofree char *string = NULL;
    const char *nearest;

    if (!is_string(d, item))
        return fail_field_type(d, item, field);
    for (int i = 0; field->choices[i] != NULL; i++) {
        if (lh_json_is(d->json->text, item, field->choices[i])) {
            *(int *)value = i;
            return true;
        }
    }
    string = lh_json_string(d->json->text, item);
    nearest = lh_nearest_word(string, field->choices);
    expected = lh_field_expected(field);
    if (nearest != NULL)
        advice = g_strdup_printf("%s (did you mean \"%s\"?)", expected, nearest);
    return fail_type(d, item, advice != NULL ? advice : expected);
}

static bool
decode_nested(Decoder *d, gsize item, const LhField *field, void *value)
{
    if (*text_of(d, item) != '{')
        return fail_field_type(d, item, field);
    return decode_object(d, item, field->fields, value);
}

/*
 * Runs `decode` on every element of an array with the path extended by its index. Storage is sized
 * first, so that elements do not move while they are decoded.
 */
static bool
decode_elements(Decoder *d, gsize array, const LhField *field, DecodeFunc decode, GArray *elements)
{
    const char *text = d->json->text;
    const gsize path_length = d->path->len;
    const guint size = g_array_get_element_size(elements);
    guint i = 0;
    LhJsonItem item;

    g_array_set_size(elements, (guint)lh_json_count(text, array));
    for (bool more = lh_json_first(text, array, &item); more; more = lh_json_next(text, &item)) {
        void *element = elements->data + (gsize)i * size;

        g_string_append_printf(d->path, "[%u]", i++);
        if (field->element_init != NULL)
            field->element_init(element);
        if (!decode(d, item.value, field, element))
            return false;
        g_string_truncate(d->path, path_length);
    }
    return true;
}

static bool
check_array(Decoder *d, gsize item, const LhField *field)
{
    if (*text_of(d, item) != '[')
        return fail_field_type(d, item, field);
    return check_range(d, item, field, (double)lh_json_count(d->json->text, item), "elements");
}

static bool
decode_array(Decoder *d, gsize item, const LhField *field, void *value)
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
decode_uints(Decoder *d, gsize item, const LhField *field, void *value)
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
decode_doubles(Decoder *d, gsize item, const LhField *field, void *value)
{
    const LhField element = { .name = field->name, .type = LH_FIELD_DOUBLE };
    GArray *numbers;

    if (!check_array(d, item, field))
        return false;
    numbers = g_array_new(FALSE, TRUE, sizeof(double));
    *(GArray **)value = numbers;
    return decode_elements(d, item, &element, decode_double, numbers);
}

static bool
decode_strings(Decoder *d, gsize item, const LhField *field, void *value)
{
    const char *text = d->json->text;
    const gsize path_length = d->path->len;
    const bool one = (field->flags & LH_FIELD_OR_ONE) != 0 && is_string(d, item);
    GPtrArray *strings;
    LhJsonItem string;

    if (!one && !check_array(d, item, field))
        return false;
    strings = g_ptr_array_new_with_free_func(g_free);
    *(GPtrArray **)value = strings;
    if (one) {
        g_ptr_array_add(strings, lh_json_string(text, item));
        return true;
    }
    for (bool more = lh_json_first(text, item, &string); more; more = lh_json_next(text, &string)) {
        g_string_append_printf(d->path, "[%u]", strings->len);
        if (!is_string(d, string.value))
            return fail_type(d, string.value, "a string");
        g_ptr_array_add(strings, lh_json_string(text, string.value));
        g_string_truncate(d->path, path_length);
    }
    return true;
}

/* Notes where the first element stands. */
static bool
decode_later(Decoder *d, gsize item, const LhField *field, void *value)
{
    LhJsonItem first = { 0 };

    if (!check_array(d, item, field))
        return false;
    lh_json_first(d->json->text, item, &first);
    *(LhFieldLater *)value = (LhFieldLater){
        .at = first.value,
        .count = (uint32_t)lh_json_count(d->json->text, item),
    };
    return true;
}

static const DecodeFunc decode_funcs[] = {
    [LH_FIELD_STRING] = decode_string,   [LH_FIELD_UINT] = decode_uint,
    [LH_FIELD_INT] = decode_int,         [LH_FIELD_DOUBLE] = decode_double,
    [LH_FIELD_BOOL] = decode_bool,       [LH_FIELD_UNIT] = decode_unit,
    [LH_FIELD_CHOICE] = decode_choice,   [LH_FIELD_OBJECT] = decode_nested,
    [LH_FIELD_ARRAY] = decode_array,     [LH_FIELD_UINTS] = decode_uints,
    [LH_FIELD_DOUBLES] = decode_doubles, [LH_FIELD_STRINGS] = decode_strings,
    [LH_FIELD_LATER] = decode_later,     [LH_FIELD_VALUES] = decode_later,
};

static const LhField *
find_field(const Decoder *d, gsize key, const LhField *fields)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        if (lh_json_is(d->json->text, key, f->name))
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
fail_unknown(Decoder *d, gsize key, const LhField *fields)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *place = describe_place(d);
    g_autofree char *name = lh_json_string(d->json->text, key);
    g_autofree char *escaped = g_strescape(name, NULL);
    g_autofree char *allowed = NULL;
    g_autofree char *advice = NULL;
    const char *nearest;

    for (const LhField *f = fields; f->name != NULL; f++)
        g_ptr_array_add(names, (gpointer)f->name);
    g_ptr_array_add(names, NULL);
    nearest = lh_nearest_word(name, (const char *const *)names->pdata);
    if (nearest != NULL)
        advice = g_strdup_printf("did you mean \"%s\"? ", nearest);
    allowed = g_strjoinv(", ", (char **)names->pdata);
    return fail(d, key, "unknown field \"%.60s\" %s; %sallowed: %s", escaped, place,
                advice != NULL ? advice : "", allowed);
}

static bool
decode_member(Decoder *d, gsize item, const LhField *field, void *out)
{
    const gsize path_length = d->path->len;

    if (is_null(d, item) && (field->flags & LH_FIELD_OR_NULL) != 0)
        return true;
    g_string_append_printf(d->path, "%s%s", path_length > 0 ? "." : "", field->name);
    if (!decode_funcs[field->type](d, item, field, (char *)out + field->offset))
        return false;
    g_string_truncate(d->path, path_length);
    return true;
}

/* Whether @object has a value for @field. */
static bool
has_member(const Decoder *d, gsize object, const LhField *field)
{
    const char *text = d->json->text;
    LhJsonItem item;
    bool more = lh_json_first(text, object, &item);

    while (more && !lh_json_is(text, item.key, field->name))
        more = lh_json_next(text, &item);
    return more && !(is_null(d, item.value) && (field->flags & LH_FIELD_OR_NULL) != 0);
}

static bool
check_required(Decoder *d, gsize object, const LhField *fields)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        g_autofree char *place = NULL;
        g_autofree char *expected = NULL;

        if ((f->flags & LH_FIELD_REQUIRED) == 0 || has_member(d, object, f))
            continue;
        place = describe_place(d);
        expected = lh_field_expected(f);
        return fail(d, object, "missing field \"%s\" %s; it must be %s", f->name, place, expected);
    }
    return true;
}

static bool
decode_object(Decoder *d, gsize object, const LhField *fields, void *out)
{
    const char *text = d->json->text;
    LhJsonItem item;

    for (bool more = lh_json_first(text, object, &item); more; more = lh_json_next(text, &item)) {
        const LhField *field = find_field(d, item.key, fields);

        if (field == NULL) {
            if (!d->allow_unknown)
                return fail_unknown(d, item.key, fields);
        } else if (!decode_member(d, item.value, field, out)) {
            return false;
        }
    }
    return check_required(d, object, fields);
}

/* The whole of one call: `d->path` is where `object` stands, and is freed. */
static bool
decode_and_free(Decoder *d, gsize object, const LhField *fields, void *out)
{
    g_autoptr(GString) path = d->path;
    g_autofree char *found = NULL;
    bool ok;

    if (*text_of(d, object) == '{') {
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
    gsize root;

    lh_json_find(json, "", &root);
    return decode_and_free(&d, root, fields, out);
}

bool
lh_json_decode_at(const LhJson *json, const char *path, const LhField *fields, void *out,
                  bool allow_unknown, GError **error)
{
    Decoder d = { json, NULL, allow_unknown, error };
    gsize object;

    if (!lh_json_find(json, path, &object) || is_null(&d, object))
        return false;
    d.path = g_string_new(path);
    return decode_and_free(&d, object, fields, out);
}

/* An element of an array of values. `d->path` is freed. */
static bool
decode_value_and_free(Decoder *d, gsize item, const LhField *field, void *out)
{
    const LhField table[] = { *field, { .name = NULL } };
    const bool ok = decode_funcs[field->type](d, item, field, (char *)out + field->offset);

    if (!ok)
        lh_json_clear(table, out);
    g_string_free(d->path, TRUE);
    return ok;
}

bool
lh_json_decode_next(const LhJson *json, const LhField *field, const char *path, LhFieldLater *later,
                    void *element, GError **error)
{
    LhJsonItem item = { .key = later->at, .value = later->at };
    Decoder d = { json, g_string_new(path), false, error };

    g_assert(later->count > 0);
    g_string_append_printf(d.path, "[%u]", later->index++);
    memset(element, 0, field->element_size);
    if (field->element_init != NULL)
        field->element_init(element);
    if (field->type == LH_FIELD_VALUES
            ? !decode_value_and_free(&d, item.value, field->fields, element)
            : !decode_and_free(&d, item.value, field->fields, element))
        return false;
    later->count--;
    lh_json_next(json->text, &item);
    later->at = item.value;
    return true;
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
        case LH_FIELD_DOUBLES:
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
