/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes JSON objects by tables of fields, with a message for every error.
 */
#include "base/json/json_decode.h"

#include "base/error.h"
#include "base/json/json_private.h"

#include <string.h>

typedef bool (*DecodeFunc)(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value);

static bool decode_object(LhJsonDecoder *d, const cJSON *object, const LhField *fields, void *out);

static bool
decode_nested(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    if (!cJSON_IsObject(item))
        return lh_json_fail_field_type(d, item, field);
    return decode_object(d, item, field->fields, value);
}

/*
 * Runs `decode` on every element of an array with the path extended by its index. Storage is sized
 * first, so that elements do not move while they are decoded.
 */
static bool
decode_elements(LhJsonDecoder *d, const cJSON *array, const LhField *field, DecodeFunc decode,
                GArray *elements)
{
    const gsize path_length = d->path->len;
    const guint size = g_array_get_element_size(elements);
    guint i = 0;

    g_array_set_size(elements, (guint)cJSON_GetArraySize(array));
    for (const cJSON *item = array->child; item != NULL; item = item->next) {
        void *element = elements->data + (gsize)i * size;

        g_string_append_printf(d->path, "[%u]", i++);
        if (field->element_init != NULL)
            field->element_init(element);
        if (!decode(d, item, field, element))
            return false;
        g_string_truncate(d->path, path_length);
    }
    return true;
}

static bool
check_array(LhJsonDecoder *d, const cJSON *item, const LhField *field)
{
    if (!cJSON_IsArray(item))
        return lh_json_fail_field_type(d, item, field);
    return lh_json_check_range(d, item, field, cJSON_GetArraySize(item), "elements");
}

static bool
decode_array(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
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
decode_numbers(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    const bool whole = field->type == LH_FIELD_UINTS;
    const LhField element = { .name = field->name,
                              .type = whole ? LH_FIELD_UINT : LH_FIELD_DOUBLE };
    GArray *numbers;

    if (!check_array(d, item, field))
        return false;
    numbers = g_array_new(FALSE, TRUE, whole ? sizeof(uint64_t) : sizeof(double));
    *(GArray **)value = numbers;
    return decode_elements(d, item, &element, whole ? lh_json_decode_uint : lh_json_decode_double,
                           numbers);
}

static bool
decode_strings(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    const gsize path_length = d->path->len;
    const bool one = (field->flags & LH_FIELD_OR_ONE) != 0 && cJSON_IsString(item);
    GPtrArray *strings;

    if (!one && !check_array(d, item, field))
        return false;
    strings = g_ptr_array_new_with_free_func(g_free);
    *(GPtrArray **)value = strings;
    if (one) {
        g_ptr_array_add(strings, g_strdup(item->valuestring));
        return true;
    }
    for (const cJSON *string = item->child; string != NULL; string = string->next) {
        g_string_append_printf(d->path, "[%u]", strings->len);
        if (!cJSON_IsString(string))
            return lh_json_fail_type(d, string, "a string");
        g_ptr_array_add(strings, g_strdup(string->valuestring));
        g_string_truncate(d->path, path_length);
    }
    return true;
}

/* Records the position of the first element. */
static bool
decode_later(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    if (!check_array(d, item, field))
        return false;
    *(LhFieldLater *)value = (LhFieldLater){
        .at = item->child != NULL ? lh_json_place(item->child) : 0,
        .count = (uint32_t)cJSON_GetArraySize(item),
    };
    d->later = true;
    return true;
}

static bool
decode_truth(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    bool flag = false;

    if (!lh_json_decode_bool(d, item, field, &flag))
        return false;
    *(int *)value = flag;
    return true;
}

static bool
decode_times(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    const LhField element = { .name = field->name,
                              .type = LH_FIELD_UINT,
                              .flags = LH_FIELD_REQUIRED | LH_FIELD_PICOSECONDS };

    if (!check_array(d, item, field))
        return false;
    *(GArray **)value = g_array_new(FALSE, TRUE, sizeof(uint64_t));
    return decode_elements(d, item, &element, lh_json_decode_sum, *(GArray **)value);
}

static const DecodeFunc decode_funcs[] = {
    [LH_FIELD_STRING] = lh_json_decode_string, [LH_FIELD_UINT] = lh_json_decode_uint,
    [LH_FIELD_INT] = lh_json_decode_int,       [LH_FIELD_DOUBLE] = lh_json_decode_double,
    [LH_FIELD_BOOL] = lh_json_decode_bool,     [LH_FIELD_UNIT] = lh_json_decode_unit,
    [LH_FIELD_CHOICE] = lh_json_decode_choice, [LH_FIELD_OBJECT] = decode_nested,
    [LH_FIELD_ARRAY] = decode_array,           [LH_FIELD_UINTS] = decode_numbers,
    [LH_FIELD_DOUBLES] = decode_numbers,       [LH_FIELD_STRINGS] = decode_strings,
    [LH_FIELD_LATER] = decode_later,           [LH_FIELD_VALUES] = decode_later,
    [LH_FIELD_TRUTH] = decode_truth,           [LH_FIELD_WIDE] = lh_json_decode_sum,
};

static bool
decode_value(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *value)
{
    if ((field->flags & LH_FIELD_PICOSECONDS) == 0)
        return decode_funcs[field->type](d, item, field, value);
    return field->type == LH_FIELD_UINTS ? decode_times(d, item, field, value)
                                         : lh_json_decode_sum(d, item, field, value);
}

static const LhField *
find_field(const char *key, const LhField *fields)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        if (strcmp(key, f->name) == 0)
            return f;
    }
    return NULL;
}

/* "in node.nics" or "at the top level". */
static char *
describe_place(const LhJsonDecoder *d)
{
    if (d->path->len == 0)
        return g_strdup("at the top level");
    return g_strdup_printf("in \"%s\"", d->path->str);
}

static bool
fail_unknown(LhJsonDecoder *d, const cJSON *member, const LhField *fields)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *place = describe_place(d);
    g_autofree char *escaped = g_strescape(member->string, NULL);
    g_autofree char *allowed = NULL;
    g_autofree char *advice = NULL;
    const char *nearest;

    for (const LhField *f = fields; f->name != NULL; f++)
        g_ptr_array_add(names, (gpointer)f->name);
    g_ptr_array_add(names, NULL);
    nearest = lh_nearest_word(member->string, (const char *const *)names->pdata);
    if (nearest != NULL)
        advice = g_strdup_printf("did you mean \"%s\"? ", nearest);
    allowed = g_strjoinv(", ", (char **)names->pdata);
    return lh_json_fail_at(d->json->name, d->json->text, lh_json_key_place(d->json->text, member),
                           d->error, "unknown field \"%.60s\" %s; %sallowed: %s", escaped, place,
                           advice != NULL ? advice : "", allowed);
}

static bool
decode_member(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *out)
{
    const gsize path_length = d->path->len;

    if (cJSON_IsNull(item) && (field->flags & LH_FIELD_OR_NULL) != 0)
        return true;
    if (field->derive != NULL) /* derived from other fields */
        return true;
    g_string_append_printf(d->path, "%s%s", path_length > 0 ? "." : "", field->name);
    if (!decode_value(d, item, field, (char *)out + field->offset))
        return false;
    g_string_truncate(d->path, path_length);
    return true;
}

static bool
check_required(LhJsonDecoder *d, const cJSON *object, const LhField *fields)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        g_autofree char *place = NULL;
        g_autofree char *expected = NULL;

        if ((f->flags & LH_FIELD_REQUIRED) == 0 ||
            cJSON_GetObjectItemCaseSensitive(object, f->name) != NULL)
            continue;
        place = describe_place(d);
        expected = lh_field_expected(f);
        return lh_json_fail_value(d, object, "missing field \"%s\" %s; it must be %s", f->name,
                                  place, expected);
    }
    return true;
}

static bool
decode_object(LhJsonDecoder *d, const cJSON *object, const LhField *fields, void *out)
{
    for (const cJSON *member = object->child; member != NULL; member = member->next) {
        const LhField *field = find_field(member->string, fields);

        if (field == NULL) {
            if (!d->allow_unknown)
                return fail_unknown(d, member, fields);
        } else if (!decode_member(d, member, field, out)) {
            return false;
        }
    }
    return check_required(d, object, fields);
}

/* Completes one call: @object is at `d->path`, which is freed. */
static bool
decode_and_free(LhJsonDecoder *d, const cJSON *object, const LhField *fields, void *out)
{
    g_autoptr(GString) path = d->path;
    g_autofree char *found = NULL;
    bool ok;

    if (cJSON_IsObject(object)) {
        ok = decode_object(d, object, fields, out);
    } else {
        found = lh_json_describe_found(d, object);
        ok = path->len == 0
                 ? lh_json_fail_value(d, object, "the top level must be an object; found %s", found)
                 : lh_json_fail_value(d, object, "\"%s\" must be an object; found %s", path->str,
                                      found);
    }
    if (!ok)
        lh_json_clear(fields, out);
    return ok;
}

bool
lh_json_decode(const LhJson *json, const LhField *fields, void *out, bool allow_unknown,
               GError **error)
{
    LhJsonDecoder d = { json, g_string_new(NULL), allow_unknown, false, error };
    const bool ok = decode_and_free(&d, lh_json_root(json), fields, out);

    if (d.later) /* frees the tree of most of the document while its elements are decoded */
        lh_json_forget(json);
    return ok;
}

bool
lh_json_decode_at(const LhJson *json, const char *path, const LhField *fields, void *out,
                  bool allow_unknown, GError **error)
{
    LhJsonDecoder d = { json, NULL, allow_unknown, false, error };
    const cJSON *object;

    if (!lh_json_find(json, path, &object) || cJSON_IsNull(object))
        return false;
    d.path = g_string_new(path);
    return decode_and_free(&d, object, fields, out);
}

/* Decodes an element of an array of values. Frees `d->path`. */
static bool
decode_value_and_free(LhJsonDecoder *d, const cJSON *item, const LhField *field, void *out)
{
    const LhField table[] = { *field, { .name = NULL } };
    const bool ok = decode_value(d, item, field, (char *)out + field->offset);

    if (!ok)
        lh_json_clear(table, out);
    g_string_free(d->path, TRUE);
    return ok;
}

bool
lh_json_decode_next(const LhJson *json, const LhField *field, const char *path, LhFieldLater *later,
                    void *element, GError **error)
{
    LhJsonDecoder d = { json, g_string_new(path), false, false, error };
    g_auto(LhJsonTree) tree = { NULL };
    gsize end;

    g_assert(later->count > 0);
    g_string_append_printf(d.path, "[%u]", later->index++);
    memset(element, 0, field->element_size);
    if (field->element_init != NULL)
        field->element_init(element);
    end = lh_json_tree_read(json, later->at, &tree);
    if (field->type == LH_FIELD_VALUES
            ? !decode_value_and_free(&d, tree.root, field->fields, element)
            : !decode_and_free(&d, tree.root, field->fields, element))
        return false;
    later->count--;
    later->at = lh_json_skip_space(json->text, lh_json_skip_space(json->text, end) + 1);
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
lh_field_members_free(GArray *members)
{
    for (guint i = 0; i < members->len; i++) {
        LhFieldMember *member = &g_array_index(members, LhFieldMember, i);
        const LhField own[] = { member->field, { .name = NULL } };

        lh_json_clear(own, &member->value);
        g_free(member->text);
    }
    g_array_unref(members);
}

void
lh_json_clear(const LhField *fields, void *out)
{
    for (const LhField *f = fields; f->name != NULL; f++) {
        void *value = (char *)out + f->offset;

        if (f->derive != NULL)
            continue;
        switch (f->type) {
        case LH_FIELD_STRING:
        case LH_FIELD_LITERAL:
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
        case LH_FIELD_MEMBERS:
            g_clear_pointer((GArray **)value, lh_field_members_free);
            break;
        case LH_FIELD_OBJECT:
        case LH_FIELD_INLINE:
            lh_json_clear(f->fields, value);
            break;
        default: /* owns nothing */
            break;
        }
    }
}
