/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the keys of a config.json by the row of its family. Every other key is harmless or an
 * error.
 */
#include "model/huggingface_values.h"
#include "base/error.h"
#include "model/families_harmless.h"

#include <string.h>

const char *
lh_hf_path(LhHfReader *r, const char *key)
{
    char *path = r->part[0] == '\0' ? g_strdup(key) : g_strdup_printf("%s.%s", r->part, key);

    g_ptr_array_add(r->paths, path);
    return path;
}

/* ---- values ---- */

static uint64_t
largest(LhHfSlot slot)
{
    switch (slot) {
    case LH_HF_LAYERS:
    case LH_HF_DENSE_FIRST:
    case LH_HF_WINDOW_FIRST:
        return LH_MODEL_LAYERS_MAX;
    case LH_HF_HIDDEN:
    case LH_HF_FFN:
    case LH_HF_EXPERT_FFN:
    case LH_HF_DENSE_FFN:
    case LH_HF_SHARED_FFN:
    case LH_HF_Q_RANK:
    case LH_HF_KV_RANK:
    case LH_HF_Q_SHARED:
    case LH_HF_EMBEDDING:
        return LH_MODEL_WIDTH_MAX;
    case LH_HF_VOCAB:
        return LH_MODEL_VOCAB_MAX;
    case LH_HF_NONE:
    case LH_HF_POSITIONS:
    case LH_HF_WINDOW:
    case LH_HF_CHUNK:
    case LH_HF_TOP_K:
        return LH_MODEL_POSITIONS_MAX;
    default:
        return LH_MODEL_HEADS_MAX;
    }
}

/* Decodes the value at @path as @type into @out. */
static bool
decode_at(const LhHfReader *r, const char *path, LhFieldType type, uint64_t max, void *out,
          GError **error)
{
    const char *dot = strrchr(path, '.');
    g_autofree char *object = dot == NULL ? NULL : g_strndup(path, (gsize)(dot - path));
    const LhField fields[] = {
        { .name = dot == NULL ? path : dot + 1, .type = type, .max = (double)max },
        { .name = NULL },
    };

    return object == NULL ? lh_json_decode(r->json, fields, out, true, error)
                          : lh_json_decode_at(r->json, object, fields, out, true, error);
}

/* Decodes a list; booleans become numbers. */
static bool
take_list(const LhHfReader *r, const char *path, LhHfValue *value, GError **error)
{
    g_autofree char *first = g_strdup_printf("%s[0]", path);
    const char kind = lh_json_kind(r->json, first);

    if (kind == '"')
        return decode_at(r, path, LH_FIELD_STRINGS, 0, &value->words, error);
    if (kind == '0' || kind == '\0')
        return decode_at(r, path, LH_FIELD_UINTS, 0, &value->list, error);
    if (kind != 't' && kind != 'f')
        return true;
    value->list = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (guint i = 0;; i++) {
        g_autofree char *element = g_strdup_printf("%s[%u]", path, i);
        const char truth = lh_json_kind(r->json, element);
        const uint64_t number = truth == 't';

        if (truth == '\0')
            return true;
        g_array_append_val(value->list, number);
    }
}

static bool
take_truth(const LhHfReader *r, const char *path, bool wanted, LhHfValue *value, GError **error)
{
    bool truth = false;

    if (!decode_at(r, path, LH_FIELD_BOOL, 0, &truth, error))
        return false;
    value->number = truth == wanted;
    return true;
}

static bool
take_any(const LhHfReader *r, const LhHfKey *key, const char *path, LhHfValue *value,
         GError **error)
{
    switch (lh_json_kind(r->json, path)) {
    case '[':
        return take_list(r, path, value, error);
    case '"':
        return decode_at(r, path, LH_FIELD_STRING, 0, &value->word, error);
    default:
        return decode_at(r, path, LH_FIELD_UINT, largest(key->slot), &value->number, error);
    }
}

static bool
take_signed(const LhHfReader *r, const LhHfKey *key, const char *path, LhHfValue *value,
            GError **error)
{
    g_autofree char *text = lh_json_text(r->json, path);

    value->stated = strcmp(text, "-1") != 0;
    return !value->stated ||
           decode_at(r, path, LH_FIELD_UINT, largest(key->slot), &value->number, error);
}

static bool
decode_value(const LhHfReader *r, const LhHfKey *key, const char *path, LhHfValue *value,
             GError **error)
{
    value->stated = true;
    if (lh_json_kind(r->json, path) == 'n')
        return true;
    switch (key->type) {
    case LH_HF_TRUTH:
        return take_truth(r, path, true, value, error);
    case LH_HF_FALSE_TRUTH:
        return take_truth(r, path, false, value, error);
    case LH_HF_REAL:
        return decode_at(r, path, LH_FIELD_DOUBLE, (uint64_t)LH_MODEL_ROTARY_BASE_MAX, &value->real,
                         error);
    case LH_HF_WORDS:
        return decode_at(r, path, LH_FIELD_STRINGS, 0, &value->words, error);
    case LH_HF_ONE_WORD:
        if (!decode_at(r, path, LH_FIELD_STRING, 0, &value->word, error))
            return false;
        value->number = strcmp(value->word, key->text) == 0;
        return true;
    case LH_HF_SIGNED:
        return take_signed(r, key, path, value, error);
    case LH_HF_ANY:
        return take_any(r, key, path, value, error);
    case LH_HF_NUMBER:
    default:
        return decode_at(r, path, LH_FIELD_UINT, largest(key->slot), &value->number, error);
    }
}

static void
clear_value(LhHfValue *value)
{
    g_clear_pointer(&value->list, g_array_unref);
    g_clear_pointer(&value->words, g_ptr_array_unref);
    g_clear_pointer(&value->word, g_free);
    g_clear_pointer(&value->path, g_free);
}

void
lh_hf_clear_values(LhHfReader *r)
{
    for (int slot = 0; slot < LH_HF_SLOTS; slot++)
        clear_value(&r->values[slot]);
}

/* Stores a value in its slot. A file may contain several names of one size if they agree; null is
 * then ignored. */
static bool
merge(LhHfReader *r, const LhHfKey *key, LhHfValue *value, GError **error)
{
    LhHfValue *first = &r->values[key->slot];

    if (key->slot == LH_HF_NONE)
        return true;
    if (first->path == NULL || (first->number == 0 && first->list == NULL && first->real == 0)) {
        clear_value(first);
        *first = *value;
        *value = (LhHfValue){ 0 };
        return true;
    }
    if (key->type != LH_HF_NUMBER || value->number == 0 || value->number == first->number)
        return true;
    return lh_json_error(r->json, value->path, error,
                         "\"%s\" is %" G_GUINT64_FORMAT " and \"%s\" is %" G_GUINT64_FORMAT
                         "; both name the same size, so leave one out",
                         value->path, value->number, first->path, first->number);
}

/* ---- known keys ---- */

typedef bool (*KeyFunc)(LhHfReader *r, const LhHfKey *key, GError **error);

static bool
each_key(LhHfReader *r, KeyFunc call, GError **error)
{
    for (const LhHfKey *key = lh_hf_common_keys; key->name != NULL; key++) {
        if (!call(r, key, error))
            return false;
    }
    for (int i = 0; i < LH_HF_KEYS_MAX && r->family->keys[i] != NULL; i++) {
        for (const LhHfKey *key = r->family->keys[i]; key->name != NULL; key++) {
            if (!call(r, key, error))
                return false;
        }
    }
    return true;
}

static bool
is_ignored(const LhHfReader *r, const char *key)
{
    const GPtrArray *ignored = r->how != NULL ? r->how->ignored : NULL;

    return ignored != NULL &&
           g_ptr_array_find_with_equal_func((GPtrArray *)ignored, key, g_str_equal, NULL);
}

/* Whether a value is empty: null, false, 0, "", [], {}. */
static bool
is_empty(const LhJson *json, const char *path)
{
    g_autofree char *text = lh_json_text(json, path);
    static const char *const empty[] = {
        "", "null", "false", "0", "0.0", "\"\"", "[]", "{}", NULL
    };

    return g_strv_contains(empty, text);
}

/* The path of @key: in the language-model part, or else at the top of the file. */
static const char *
find_key(LhHfReader *r, const LhHfKey *key)
{
    const char *path = lh_hf_path(r, key->name);

    return lh_json_kind(r->json, path) != '\0'        ? path
           : lh_json_kind(r->json, key->name) != '\0' ? key->name
                                                      : NULL;
}

static bool
refuse_key(LhHfReader *r, const LhHfKey *key, const char *path, GError **error)
{
    const bool refused =
        key->type == LH_HF_NOT_TRUE ? lh_json_kind(r->json, path) == 't' : !is_empty(r->json, path);

    if (!refused)
        return true;
    return lh_json_error(r->json, path, error,
                         "\"%s\": %s: not supported, so this model cannot be predicted; "
                         "--ignore-key %s reads the model without it",
                         path, key->text, key->name);
}

static bool
read_key(LhHfReader *r, const LhHfKey *key, GError **error)
{
    const char *path = find_key(r, key);
    LhHfValue value = { 0 };
    bool ok;

    if (path == NULL)
        return true;
    if (is_ignored(r, key->name)) { /* overrides a mask that is the class's default */
        if (key->slot == LH_HF_TOP_K || key->slot == LH_HF_CHUNK)
            r->values[key->slot].stated = true;
        return true;
    }
    if (key->type == LH_HF_NOT_TRUE || key->type == LH_HF_NOT_MODELLED)
        return refuse_key(r, key, path, error);
    value.path = g_strdup(path);
    ok = decode_value(r, key, path, &value, error) && merge(r, key, &value, error);
    clear_value(&value);
    return ok;
}

/* Whether @name, or a key inside it, is a key of the family. With @names, adds the known names to
 * it instead. */
static bool
is_known(const LhHfReader *r, const char *name, GPtrArray *names)
{
    const gsize length = strlen(name);

    for (const LhHfKey *key = lh_hf_common_keys; key->name != NULL; key++) {
        if (names != NULL)
            g_ptr_array_add(names, (gpointer)key->name);
        else if (strcmp(key->name, name) == 0)
            return true;
    }
    for (int i = 0; i < LH_HF_KEYS_MAX && r->family->keys[i] != NULL; i++) {
        for (const LhHfKey *key = r->family->keys[i]; key->name != NULL; key++) {
            if (names != NULL)
                g_ptr_array_add(names, (gpointer)key->name);
            else if (strncmp(key->name, name, length) == 0 &&
                     (key->name[length] == '\0' || key->name[length] == '.'))
                return true;
        }
    }
    return false;
}

static bool
fail_unknown(LhHfReader *r, const char *path, const char *key, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    const char *nearest;

    is_known(r, "", names);
    g_ptr_array_add(names, NULL);
    nearest = lh_nearest_word(key, (const char *const *)names->pdata);
    return lh_json_error(r->json, path, error,
                         "unknown key \"%s\" of model type %s: it may affect the model's "
                         "shape%s%s%s; --ignore-key %s reads the model without it",
                         path, r->model_type, nearest != NULL ? " (did you mean \"" : "",
                         nearest != NULL ? nearest : "", nearest != NULL ? "\"?)" : "", key);
}

static bool
is_noted(const LhHfReader *r, const char *reason)
{
    for (guint i = 0; i < r->model->notes->len; i++) {
        if (g_str_has_suffix(g_ptr_array_index(r->model->notes, i), reason))
            return true;
    }
    return false;
}

/* Adds a note on a part that is left out, once per reason. */
static void
note_left_out(LhHfReader *r, const char *path, const char *key)
{
    for (const LhHfLeftOut *part = lh_hf_left_out; part->keys != NULL; part++) {
        g_autofree char *note = NULL;

        if (!lh_hf_has_word(part->keys, key) || is_empty(r->json, path) ||
            is_noted(r, part->reason))
            continue;
        note = g_strdup_printf("the model's key \"%s\": %s", path, part->reason);
        g_ptr_array_add(r->model->notes, g_steal_pointer(&note));
    }
}

/* Checks a key of @object, "" or "attn_config", whose path in the file is @at. */
static bool
check_key(LhHfReader *r, const char *at, const char *object, const char *key, GError **error)
{
    g_autofree char *path = at[0] == '\0' ? g_strdup(key) : g_strdup_printf("%s.%s", at, key);
    g_autofree char *name =
        object[0] == '\0' ? g_strdup(key) : g_strdup_printf("%s.%s", object, key);

    if (strcmp(key, "model_type") == 0 || strcmp(key, "architectures") == 0 || is_ignored(r, key) ||
        is_known(r, name, NULL))
        return true;
    if (lh_hf_is_harmless(key) || is_empty(r->json, path)) {
        note_left_out(r, path, key);
        g_ptr_array_add(r->model->unused, g_steal_pointer(&path));
        return true;
    }
    return fail_unknown(r, path, key, error);
}

static bool
check_keys(LhHfReader *r, const char *at, const char *object, GError **error)
{
    g_autoptr(GPtrArray) keys = lh_json_keys(r->json, at);

    for (guint i = 0; i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        g_autofree char *path = at[0] == '\0' ? g_strdup(key) : g_strdup_printf("%s.%s", at, key);
        const gsize length = strlen(path);
        const bool holds_part = strncmp(r->part, path, length) == 0 &&
                                (r->part[length] == '\0' || r->part[length] == '.');

        if (holds_part)
            continue;
        if (!check_key(r, at, object, key, error))
            return false;
        if (object[0] == '\0' && lh_json_kind(r->json, path) == '{' && is_known(r, key, NULL) &&
            !check_keys(r, path, key, error))
            return false;
    }
    return true;
}

/* Checks that the file has every key of --ignore-key, and notes each for all outputs. */
static bool
note_ignored(LhHfReader *r, GError **error)
{
    const GPtrArray *ignored = r->how != NULL ? r->how->ignored : NULL;

    for (guint i = 0; ignored != NULL && i < ignored->len; i++) {
        const char *key = g_ptr_array_index(ignored, i);
        const char *path = lh_hf_path(r, key);

        if (lh_json_kind(r->json, path) == '\0')
            path = key;
        if (lh_json_kind(r->json, path) == '\0')
            return lh_json_error(r->json, "", error, "the file has no key \"%s\" to ignore", key);
        g_ptr_array_add(r->model->notes,
                        g_strdup_printf("the model's key \"%s\" is ignored, as --ignore-key says: "
                                        "results are for a model without it",
                                        path));
    }
    return true;
}

bool
lh_hf_read_values(LhHfReader *r, GError **error)
{
    return each_key(r, read_key, error) && check_keys(r, "", "", error) &&
           (r->part[0] == '\0' || check_keys(r, r->part, "", error)) && note_ignored(r, error);
}

uint64_t
lh_hf_number(const LhHfReader *r, LhHfSlot slot)
{
    if (r->values[slot].stated)
        return r->values[slot].number;
    for (int i = 0; i < LH_HF_DEFAULTS_MAX && r->family->defaults[i].slot != LH_HF_NONE; i++) {
        if (r->family->defaults[i].slot == slot)
            return r->family->defaults[i].value;
    }
    return 0;
}

const char *
lh_hf_slot_path(LhHfReader *r, LhHfSlot slot)
{
    if (r->values[slot].path != NULL)
        return r->values[slot].path;
    for (int i = 0; i < LH_HF_KEYS_MAX && r->family->keys[i] != NULL; i++) {
        for (const LhHfKey *key = r->family->keys[i]; key->name != NULL; key++) {
            if (key->slot == slot)
                return lh_hf_path(r, key->name);
        }
    }
    return lh_hf_path(r, slot == LH_HF_VOCAB ? "vocab_size" : "model_type");
}
