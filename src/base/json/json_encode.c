/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json_encode.h"

#include "base/json/json_decode.h"

#include <math.h>
#include <string.h>

/* A value to encode: its place, and its default in a struct with the presets. */
typedef struct {
    const LhField *field;
    const void *at;
    const void *usual; /* NULL: zero */
} Value;

typedef void (*EncodeFunc)(LhJsonWriter *w, const char *key, const Value *v);

static Value
member_of(const LhField *field, const void *of, const void *usual)
{
    return (Value){ .field = field,
                    .at = (const char *)of + field->offset,
                    .usual = usual == NULL ? NULL : (const char *)usual + field->offset };
}

static const void *
pointer_of(const Value *v)
{
    return *(const void *const *)v->at;
}

/* ---- numbers and words ---- */

static void
write_whole(LhJsonWriter *w, const char *key, const LhField *field, LhWide value)
{
    if ((field->flags & LH_FIELD_PICOSECONDS) != 0)
        lh_jsonw_seconds(w, key, value);
    else
        lh_jsonw_wide(w, key, value);
}

static void
encode_string(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_jsonw_string(w, key, pointer_of(v));
}

static void
encode_literal(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_jsonw_number(w, key, pointer_of(v));
}

static void
encode_uint(LhJsonWriter *w, const char *key, const Value *v)
{
    write_whole(w, key, v->field, *(const uint64_t *)v->at);
}

static void
encode_int(LhJsonWriter *w, const char *key, const Value *v)
{
    write_whole(w, key, v->field, *(const int64_t *)v->at);
}

static void
encode_wide(LhJsonWriter *w, const char *key, const Value *v)
{
    write_whole(w, key, v->field, *(const LhWide *)v->at);
}

static void
encode_double(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_jsonw_double(w, key, *(const double *)v->at);
}

static void
encode_bool(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_jsonw_bool(w, key, *(const bool *)v->at);
}

static void
encode_truth(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_jsonw_bool(w, key, *(const int *)v->at != 0);
}

/* Caller frees. */
static char *
fine_text(const Value *v)
{
    const bool time = v->field->unit == LH_UNIT_TIME;

    return lh_unit_text_fine(v->field->unit,
                             time ? (double)*(const LhTime *)v->at : *(const double *)v->at);
}

/* The value as a string; caller frees; NULL: encode it as a number. */
static char *
unit_text(const Value *v, bool fine)
{
    if (fine && v->field->unit != LH_UNIT_BYTES && v->field->unit != LH_UNIT_COUNT)
        return fine_text(v);
    switch (v->field->unit) {
    case LH_UNIT_BYTES:
        return lh_format_bytes(*(const uint64_t *)v->at);
    case LH_UNIT_TIME:
        return lh_format_time(*(const LhTime *)v->at);
    case LH_UNIT_BANDWIDTH:
    case LH_UNIT_PORT:
        return lh_format_bandwidth(*(const double *)v->at);
    case LH_UNIT_FLOPS:
        return lh_format_flops(*(const double *)v->at);
    case LH_UNIT_COUNT:
        break;
    }
    return NULL;
}

static void
encode_unit(LhJsonWriter *w, const char *key, const Value *v)
{
    g_autofree char *text = unit_text(v, lh_jsonw_is_fine(w));

    if (text != NULL)
        lh_jsonw_string(w, key, text);
    else
        lh_jsonw_uint(w, key, *(const uint64_t *)v->at);
}

static void
encode_choice(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_jsonw_string(w, key, v->field->choices[*(const int *)v->at]);
}

/* ---- objects and arrays ---- */

static void
encode_nested(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_json_encode(w, key, v->field->fields, v->at, v->usual);
}

static void
encode_pointer(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_json_encode(w, key, v->field->fields, pointer_of(v), NULL);
}

static void
encode_counts(LhJsonWriter *w, const char *key, const Value *v)
{
    const uint64_t *counts = v->at;

    lh_jsonw_object_begin(w, key);
    for (guint i = 0; v->field->choices[i] != NULL; i++)
        if (counts[i] != 0)
            write_whole(w, v->field->choices[i], v->field, counts[i]);
    lh_jsonw_object_end(w);
}

static void
encode_listed(LhJsonWriter *w, const char *key, const Value *v)
{
    lh_jsonw_object_begin(w, key);
    lh_json_encode_list(w, pointer_of(v));
    lh_jsonw_object_end(w);
}

static void
encode_array(LhJsonWriter *w, const char *key, const Value *v)
{
    const GArray *elements = pointer_of(v);
    const guint size = g_array_get_element_size((GArray *)elements);
    g_autofree void *usual = g_malloc0(size);

    if (v->field->element_init != NULL)
        v->field->element_init(usual);
    lh_jsonw_array_begin(w, key);
    for (guint i = 0; i < elements->len; i++)
        lh_json_encode(w, NULL, v->field->fields, elements->data + (gsize)i * size, usual);
    lh_jsonw_array_end(w);
}

static void
encode_pointers(LhJsonWriter *w, const char *key, const Value *v)
{
    const GPtrArray *elements = pointer_of(v);

    lh_jsonw_array_begin(w, key);
    for (guint i = 0; i < elements->len; i++)
        lh_json_encode(w, NULL, v->field->fields, elements->pdata[i], NULL);
    lh_jsonw_array_end(w);
}

static void
encode_uints(LhJsonWriter *w, const char *key, const Value *v)
{
    const GArray *numbers = pointer_of(v);

    lh_jsonw_array_begin(w, key);
    for (guint i = 0; i < numbers->len; i++)
        write_whole(w, NULL, v->field, g_array_index(numbers, uint64_t, i));
    lh_jsonw_array_end(w);
}

static void
encode_doubles(LhJsonWriter *w, const char *key, const Value *v)
{
    const GArray *numbers = pointer_of(v);

    lh_jsonw_array_begin(w, key);
    for (guint i = 0; i < numbers->len; i++)
        lh_jsonw_double(w, NULL, g_array_index(numbers, double, i));
    lh_jsonw_array_end(w);
}

static void
encode_strings(LhJsonWriter *w, const char *key, const Value *v)
{
    const GPtrArray *strings = pointer_of(v);

    if ((v->field->flags & LH_FIELD_OR_ONE) != 0 && strings->len == 1) {
        lh_jsonw_string(w, key, strings->pdata[0]);
        return;
    }
    lh_jsonw_array_begin(w, key);
    for (guint i = 0; i < strings->len; i++)
        lh_jsonw_string(w, NULL, strings->pdata[i]);
    lh_jsonw_array_end(w);
}

static const EncodeFunc encode_funcs[] = {
    [LH_FIELD_STRING] = encode_string,   [LH_FIELD_UINT] = encode_uint,
    [LH_FIELD_INT] = encode_int,         [LH_FIELD_WIDE] = encode_wide,
    [LH_FIELD_DOUBLE] = encode_double,   [LH_FIELD_BOOL] = encode_bool,
    [LH_FIELD_UNIT] = encode_unit,       [LH_FIELD_CHOICE] = encode_choice,
    [LH_FIELD_OBJECT] = encode_nested,   [LH_FIELD_POINTER] = encode_pointer,
    [LH_FIELD_COUNTS] = encode_counts,   [LH_FIELD_ARRAY] = encode_array,
    [LH_FIELD_UINTS] = encode_uints,     [LH_FIELD_DOUBLES] = encode_doubles,
    [LH_FIELD_STRINGS] = encode_strings, [LH_FIELD_POINTERS] = encode_pointers,
    [LH_FIELD_MEMBERS] = encode_listed,  [LH_FIELD_LITERAL] = encode_literal,
    [LH_FIELD_TRUTH] = encode_truth,
};

static EncodeFunc
encode_func_of(const LhField *field)
{
    const EncodeFunc encode = encode_funcs[field->type];

    g_assert(encode != NULL); /* a type that is only decoded */
    return encode;
}

/* ---- omission of members ---- */

static bool
may_be_none(const LhField *field)
{
    return (field->flags & (LH_FIELD_REQUIRED | LH_FIELD_OR_NULL)) != LH_FIELD_REQUIRED;
}

bool
lh_json_is_none(const LhField *field, const void *at)
{
    switch (field->type) {
    case LH_FIELD_UINT:
        return may_be_none(field) && *(const uint64_t *)at == LH_FIELD_NO_UINT;
    case LH_FIELD_INT:
        return may_be_none(field) && *(const int64_t *)at == LH_FIELD_NO_INT;
    case LH_FIELD_WIDE:
        return may_be_none(field) && *(const LhWide *)at == LH_FIELD_NO_INT;
    case LH_FIELD_DOUBLE:
        return !isfinite(*(const double *)at);
    case LH_FIELD_CHOICE:
    case LH_FIELD_TRUTH:
        return *(const int *)at < 0;
    case LH_FIELD_BOOL:
    case LH_FIELD_UNIT:
    case LH_FIELD_OBJECT:
    case LH_FIELD_INLINE:
        return false;
    case LH_FIELD_COUNTS:
        return may_be_none(field) && *(const uint64_t *)at == LH_FIELD_NO_UINT;
    default:
        return *(const void *const *)at == NULL;
    }
}

static void
set_none(const LhField *field, void *at)
{
    switch (field->type) {
    case LH_FIELD_UINT:
    case LH_FIELD_COUNTS:
        *(uint64_t *)at = LH_FIELD_NO_UINT;
        break;
    case LH_FIELD_INT:
        *(int64_t *)at = LH_FIELD_NO_INT;
        break;
    case LH_FIELD_WIDE:
        *(LhWide *)at = LH_FIELD_NO_INT;
        break;
    case LH_FIELD_DOUBLE:
        *(double *)at = NAN;
        break;
    case LH_FIELD_CHOICE:
        *(int *)at = -1;
        break;
    case LH_FIELD_BOOL:
    case LH_FIELD_UNIT:
    case LH_FIELD_OBJECT:
    case LH_FIELD_INLINE:
        break;
    default:
        *(void **)at = NULL;
    }
}

void
lh_json_set_none(const LhField *fields, void *of)
{
    for (const LhField *field = fields; field->name != NULL; field++)
        if (field->derive == NULL && may_be_none(field))
            set_none(field, (char *)of + field->offset);
}

static bool
is_usual(const Value *v)
{
    static const LhWide zero;
    const void *usual = v->usual != NULL ? v->usual : &zero;
    const gsize size = lh_field_number_size(v->field);

    if (size == 0 || (v->field->flags & LH_FIELD_STATED) != 0)
        return false;
    if (v->field->type == LH_FIELD_DOUBLE) /* -0 is 0 */
        return *(const double *)v->at == *(const double *)usual;
    return memcmp(v->at, usual, size) == 0;
}

/* Whether the value is its default; for an object, whether all its members are. */
static bool
is_as_absent(const Value *v)
{
    bool absent = true;

    if (v->field->type != LH_FIELD_OBJECT && v->field->type != LH_FIELD_INLINE)
        return lh_json_is_none(v->field, v->at) || is_usual(v);
    for (const LhField *f = v->field->fields; absent && f->name != NULL; f++) {
        const Value member = member_of(f, v->at, v->usual);

        absent = f->derive == NULL && is_as_absent(&member);
    }
    return absent;
}

static bool
is_left_out(const Value *v)
{
    return (v->field->flags & (LH_FIELD_REQUIRED | LH_FIELD_OR_NULL)) == 0 && is_as_absent(v);
}

/* A required value that is missing is a programming error: writes null, so that there is a
 * document. */
static void
encode_value(LhJsonWriter *w, const Value *v)
{
    if (!lh_json_is_none(v->field, v->at)) {
        if (!is_left_out(v))
            encode_func_of(v->field)(w, v->field->name, v);
        return;
    }
#ifdef LH_CHECKED
    g_assert(may_be_none(v->field));
#endif
    if ((v->field->flags & (LH_FIELD_REQUIRED | LH_FIELD_OR_NULL)) != 0)
        lh_jsonw_string(w, v->field->name, NULL);
}

/* ---- members ---- */

static void
encode_derived(LhJsonWriter *w, const LhField *field, const void *of)
{
    LhField own[] = { *field, { .name = NULL } };
    g_autofree void *value = g_malloc0(MAX(field->element_size, sizeof(LhWide)));

    field->derive(of, value);
    own->derive = NULL;
    own->offset = 0;
    encode_value(w, &(Value){ .field = own, .at = value });
    lh_json_clear(own, value);
}

void
lh_json_encode_member(LhJsonWriter *w, const LhField *field, const void *of, const void *usual)
{
    const Value value = member_of(field, of, usual);

    if (field->derive != NULL)
        encode_derived(w, field, of);
    else if (field->type == LH_FIELD_INLINE)
        lh_json_encode_members(w, field->fields, value.at, value.usual);
    else
        encode_value(w, &value);
}

void
lh_json_encode_list(LhJsonWriter *w, const GArray *members)
{
    for (guint i = 0; i < members->len; i++) {
        const LhFieldMember *member = &g_array_index(members, LhFieldMember, i);

        lh_json_encode_member(w, &member->field, &member->value, NULL);
    }
}

void
lh_json_encode_members(LhJsonWriter *w, const LhField *fields, const void *of, const void *usual)
{
    for (const LhField *field = fields; field->name != NULL; field++)
        lh_json_encode_member(w, field, of, usual);
}

void
lh_json_encode(LhJsonWriter *w, const char *key, const LhField *fields, const void *of,
               const void *usual)
{
    lh_jsonw_object_begin(w, key);
    lh_json_encode_members(w, fields, of, usual);
    lh_jsonw_object_end(w);
}

void
lh_json_encode_open(LhJsonWriter *w, const char *key, const LhField *fields, const void *of,
                    const void *usual)
{
    lh_jsonw_object_begin(w, key);
    for (; fields[1].name != NULL; fields++)
        lh_json_encode_member(w, fields, of, usual);
    lh_jsonw_array_begin(w, fields->name);
}

void
lh_json_encode_close(LhJsonWriter *w)
{
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

void
lh_json_encode_text(const LhField *fields, const void *of, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);

    lh_json_encode(w, NULL, fields, of, NULL);
}

char *
lh_json_encode_line(const LhField *fields, const void *of)
{
    GString *out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, true);

    lh_json_encode(w, NULL, fields, of, NULL);
    lh_jsonw_free(w);
    return g_strchomp(g_string_free(out, FALSE));
}
