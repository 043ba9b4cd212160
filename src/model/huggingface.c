/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Hugging Face's config.json. The meaning of a family's keys is data (families.c). A key that
 * is neither in the family's row nor in the list of harmless keys is an error, and so is an unknown
 * family. Layers and masks that are not supported are rejected by their key. Left out: vision and
 * audio parts, multi-token prediction layers, and quantisation.
 */
#include "model/huggingface.h"

#include "base/error.h"
#include "model/huggingface_layers.h"

#include <string.h>

/* ---- the family ---- */

static char *
text_at(const LhJson *json, const char *path)
{
    g_autofree char *text = lh_json_text(json, path);
    const gsize length = strlen(text);

    return text[0] == '"' && length >= 2 ? g_strndup(text + 1, length - 2) : NULL;
}

/* The path of the language-model part, in a multimodal model's file; "" for the whole file. */
static const char *
find_part(const LhJson *json)
{
    for (const char *const *part = lh_hf_text_parts; *part != NULL; part++) {
        if (lh_json_kind(json, *part) == '{')
            return *part;
    }
    return "";
}

static const char *
keep(LhHfReader *r, char *text)
{
    if (text != NULL)
        g_ptr_array_add(r->paths, text);
    return text;
}

/* The language model's type: as stated, or by its wrapper's type. NULL: unknown. */
static const char *
find_type(LhHfReader *r)
{
    const char *type = keep(r, text_at(r->json, lh_hf_path(r, "model_type")));
    const char *whole = keep(r, text_at(r->json, "model_type"));

    if (r->part[0] == '\0' || (type != NULL && lh_hf_family(type) != NULL))
        return type;
    for (const LhHfWrapper *w = lh_hf_wrappers; w->model_type != NULL; w++) {
        if (g_strcmp0(w->model_type, whole) == 0)
            return type != NULL ? type : w->text_type;
    }
    return type;
}

static void
add_words(GPtrArray *all, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);

    for (char **word = words; *word != NULL; word++)
        g_ptr_array_add(all, g_strdup(*word));
}

static bool
fail_type(LhHfReader *r, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *path = lh_hf_path(r, "model_type");
    const char *nearest;

    if (r->model_type == NULL &&
        r->part[0] != '\0') { /* a wrapper whose part has an unknown type */
        r->model_type = keep(r, text_at(r->json, "model_type"));
        path = "model_type";
    }
    if (r->model_type == NULL)
        return lh_json_error(r->json, path, error,
                             "missing field \"%s\": neither a Hugging Face config.json of a known "
                             "model nor, without \"schema\": \"longhaul.model/1\", a longhaul "
                             "model file; --assume llama reads it as a Llama",
                             path);
    for (const LhHfFamily *const *kin = lh_hf_families; *kin != NULL; kin++) {
        for (const LhHfFamily *f = *kin; f->model_types != NULL; f++)
            add_words(names, f->model_types);
    }
    g_ptr_array_add(names, NULL);
    nearest = lh_nearest_word(r->model_type, (const char *const *)names->pdata);
    return lh_json_error(r->json, path, error,
                         "unknown model type \"%.60s\"%s%s%s: the meaning of its keys is not "
                         "known; --assume llama reads it as a Llama, and every output states this",
                         r->model_type, nearest != NULL ? " (did you mean \"" : "",
                         nearest != NULL ? nearest : "", nearest != NULL ? "\"?)" : "");
}

static bool
is_wrapper(const char *type)
{
    for (const LhHfWrapper *w = lh_hf_wrappers; w->model_type != NULL; w++) {
        if (g_strcmp0(w->model_type, type) == 0)
            return true;
    }
    return false;
}

/* Rejects sizes outside the language-model part, where the class of @whole reads its sizes
 * there. */
static bool
check_sizes_outside(LhHfReader *r, const char *whole, GError **error)
{
    const LhHfFamily *family = lh_hf_family(whole);

    for (int i = 0; i < LH_HF_KEYS_MAX && family->keys[i] != NULL; i++) {
        for (const LhHfKey *key = family->keys[i]; key->name != NULL; key++) {
            g_autofree char *outside = lh_json_text(r->json, key->name);
            g_autofree char *within = lh_json_text(r->json, lh_hf_path(r, key->name));

            if (key->type != LH_HF_NUMBER || outside[0] == '\0' || strcmp(outside, within) == 0)
                continue;
            return lh_json_error(r->json, key->name, error,
                                 "\"%s\" is %s here and %s in \"%s\": model type %s reads its "
                                 "sizes here, so leave one out",
                                 key->name, outside, within[0] != '\0' ? within : "absent", r->part,
                                 whole);
        }
    }
    return true;
}

/* Rejects files that name two families or contain two models: it is ambiguous which is meant. */
static bool
check_one_model(LhHfReader *r, const char *architecture, GError **error)
{
    const char *whole = keep(r, text_at(r->json, "model_type"));
    const LhHfFamily *other =
        architecture == NULL ? NULL : lh_hf_family_of_architecture(architecture);
    g_autofree char *first = NULL;

    if (other != NULL && r->model_type != NULL &&
        !lh_hf_has_word(r->family->architectures, architecture)) {
        first = g_strndup(other->model_types, strcspn(other->model_types, " "));
        return lh_json_error(r->json, lh_hf_path(r, "architectures"), error,
                             "\"architectures\" contains %s, which is model type %s, but "
                             "\"model_type\" is \"%s\": leave out the wrong one",
                             architecture, first, r->model_type);
    }
    if (r->part[0] == '\0' || whole == NULL || lh_hf_family(whole) == NULL || is_wrapper(whole) ||
        lh_hf_family(whole)->refused != NULL)
        return true;
    return check_sizes_outside(r, whole, error);
}

static bool
find_family(LhHfReader *r, GError **error)
{
    const char *assumed = r->how != NULL ? r->how->assume : NULL;
    const char *architecture;

    r->part = find_part(r->json);
    r->model_type = find_type(r);
    if (assumed != NULL) {
        r->family = lh_hf_family(assumed);
        if (r->family == NULL) {
            g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                        "--assume: unknown model type \"%.60s\"; a known one is llama", assumed);
            return false;
        }
        g_ptr_array_add(
            r->model->notes,
            g_strdup_printf("the model's type is %s; it is read as %s, as --assume says",
                            r->model_type != NULL ? r->model_type : "not stated", assumed));
        r->model_type = assumed;
        return true;
    }
    architecture = keep(r, text_at(r->json, lh_hf_path(r, "architectures[0]")));
    if (r->model_type != NULL)
        r->family = lh_hf_family(r->model_type);
    else if (architecture != NULL)
        r->family = lh_hf_family_of_architecture(architecture);
    if (r->family == NULL)
        return fail_type(r, error);
    if (!check_one_model(r, architecture, error))
        return false;
    if (r->model_type == NULL)
        r->model_type = architecture;
    return true;
}

/* Rejects a family with unsupported layers or masks, at the key that shows them. */
static bool
refuse_family(LhHfReader *r, GError **error)
{
    g_auto(GStrv) keys =
        r->family->refused_by == NULL ? NULL : g_strsplit(r->family->refused_by, " ", -1);
    const char *path = lh_hf_path(r, "model_type");

    if (r->family->refused == NULL)
        return true;
    for (char **key = keys; key != NULL && *key != NULL; key++) {
        const char *candidate = lh_hf_path(r, *key);

        if (lh_json_has(r->json, candidate)) {
            path = candidate;
            break;
        }
    }
    return lh_json_error(
        r->json, path, error,
        "\"%s\" of model type %s: %s: not supported, so this model cannot be predicted", path,
        r->model_type, r->family->refused);
}

/* ---- the model ---- */

static bool
require(LhHfReader *r, LhHfSlot slot, GError **error)
{
    const char *path;

    if (lh_hf_number(r, slot) > 0)
        return true;
    path = lh_hf_slot_path(r, slot);
    if (lh_json_kind(r->json, path) == 'n')
        return lh_json_error(r->json, path, error, "\"%s\" is null; allowed: at least 1", path);
    if (lh_json_has(r->json, path))
        return lh_json_error(r->json, path, error, "\"%s\" is 0; allowed: at least 1", path);
    return lh_json_error(
        r->json, path, error,
        "missing field \"%s\", for which the class of model type %s has no default", path,
        r->model_type);
}

static uint64_t
groups_of(const LhHfReader *r)
{
    const bool one = lh_hf_number(r, LH_HF_MULTI_QUERY) != 0;
    const LhHfValue *grouped = &r->values[LH_HF_UNGROUPED];

    if (one && lh_hf_number(r, LH_HF_GROUPED) == 0)
        return 1;
    if (grouped->stated && grouped->number == 0)
        return 0;
    return lh_hf_number(r, LH_HF_GROUPS);
}

/* Drops the sizes of latent attention if the file also says that it has none. */
static void
drop_latent(LhHfReader *r)
{
    static const LhHfSlot sizes[] = { LH_HF_QK_NOPE, LH_HF_QK_ROPE, LH_HF_V_DIM, LH_HF_Q_RANK,
                                      LH_HF_KV_RANK };

    for (gsize i = 0; lh_hf_number(r, LH_HF_NO_LATENT) != 0 && i < G_N_ELEMENTS(sizes); i++) {
        r->values[sizes[i]].stated = true;
        r->values[sizes[i]].number = 0;
    }
}

static bool
read_heads(LhHfReader *r, const LhModelKeys *keys, GError **error)
{
    LhModel *m = r->model;
    const uint64_t qk = lh_hf_number(r, LH_HF_QK_NOPE) + lh_hf_number(r, LH_HF_QK_ROPE);
    LhHfValue *v = &r->values[LH_HF_V_DIM];

    if (!require(r, LH_HF_HIDDEN, error) || !require(r, LH_HF_HEADS, error))
        return false;
    m->hidden_size = lh_hf_number(r, LH_HF_HIDDEN);
    m->num_attention_heads = lh_hf_number(r, LH_HF_HEADS);
    m->num_query_groups = groups_of(r);
    if (m->num_query_groups == 0 || lh_hf_number(r, LH_HF_KV_RANK) > 0)
        m->num_query_groups = m->num_attention_heads;
    if (lh_hf_number(r, LH_HF_KV_RANK) > 0 && lh_hf_number(r, LH_HF_V_DIM) == 0) {
        v->stated = true; /* MiniCPM3 */
        v->number = m->hidden_size / m->num_attention_heads;
    }
    /*
     * Latent attention expands to heads whose width differs between q, k and v. Flops and bytes of
     * attention depend only on the sum, so the mean is exact. A head_dim in the file is the rotary
     * part.
     */
    if (lh_hf_number(r, LH_HF_KV_RANK) > 0)
        m->kv_channels = (qk + lh_hf_number(r, LH_HF_V_DIM) + 1) / 2;
    else
        m->kv_channels = lh_hf_number(r, LH_HF_HEAD_DIM);
    return m->kv_channels > 0 || lh_model_default_kv_channels(r->json, keys, m, error);
}

/* Falcon's parallel layers have one norm, its later ones two; other families state it. */
static void
fix_norms(LhHfReader *r)
{
    const char *path = lh_hf_path(r, "parallel_attn");
    LhHfValue *norms = &r->values[LH_HF_NORMS];

    if (norms->stated || !g_str_has_prefix(r->family->model_types, "falcon"))
        return;
    if (lh_hf_number(r, LH_HF_GROUPED) != 0 || lh_json_kind(r->json, path) == 'f') {
        norms->stated = true;
        norms->number = 2;
    }
}

/* Notes a mask that restricts queries to some tokens; lengths at which it matters are rejected
 * later. */
static void
note_mask(LhHfReader *r)
{
    LhModel *m = r->model;
    const bool chunked = m->chunk_size > 0;
    const char *path = lh_hf_slot_path(r, chunked ? LH_HF_CHUNK : LH_HF_TOP_K);
    const char *key = strrchr(path, '.');
    g_autofree char *where = NULL;
    g_autoptr(GError) error = NULL;

    if (!chunked && lh_hf_number(r, LH_HF_TOP_K) == 0)
        return;
    where = chunked ? g_strdup_printf(", so at most %" G_GUINT64_FORMAT " tokens can be predicted",
                                      m->chunk_size)
                    : g_strdup(", so this model cannot be predicted");
    lh_json_error(r->json, path, &error,
                  "\"%s\": %s; this mask is not supported%s; --ignore-key %s assumes that they "
                  "attend to all earlier tokens, and every output states this",
                  path,
                  chunked ? "queries attend only within their chunk"
                          : "queries attend only to tokens that an indexer selects",
                  where, key != NULL ? key + 1 : path);
    m->refusal = g_strdup(error->message);
    m->refused_above = m->chunk_size;
}

static void
read_rest(LhHfReader *r)
{
    LhModel *m = r->model;
    const double base = r->values[LH_HF_ROTARY_BASE].real;
    const uint64_t widest = lh_hf_number(r, LH_HF_ROTARY_UP_TO);

    m->vocab_size = lh_hf_number(r, LH_HF_VOCAB);
    lh_hf_read_weights(r);
    m->bidirectional =
        lh_hf_number(r, LH_HF_BIDIRECTIONAL) != 0 && lh_hf_number(r, LH_HF_DECODER) == 0;
    lh_model_default_rotary(m);
    if (base > 0 && m->rotary_base > 0)
        m->rotary_base = base;
    if (lh_hf_number(r, LH_HF_NO_ROTARY) != 0 || (widest > 0 && m->hidden_size > widest))
        m->rotary_base = 0;
    m->max_position_embeddings = lh_hf_number(r, LH_HF_POSITIONS);
    m->tied_embeddings = lh_hf_number(r, LH_HF_TIED) != 0 || lh_hf_number(r, LH_HF_HEADLESS) != 0;
    note_mask(r);
}

/* "llama-3-8b" from "models/llama-3-8b/config.json"; "mine" from "mine.json". Caller frees. */
static char *
name_of_file(const char *file)
{
    g_autofree char *base = g_path_get_basename(file);
    g_autofree char *folder = g_path_get_dirname(file);

    if (strcmp(base, "config.json") == 0 && strcmp(folder, ".") != 0)
        return g_path_get_basename(folder);
    if (g_str_has_suffix(base, ".json"))
        base[strlen(base) - strlen(".json")] = '\0';
    return g_steal_pointer(&base);
}

static bool
read_hf_model(LhHfReader *r, const char *file, GError **error)
{
    LhModel *m = r->model;
    LhModelKeys keys;

    if (!find_family(r, error) || !refuse_family(r, error) || !lh_hf_read_values(r, error))
        return false;
    keys = (LhModelKeys){
        .hidden = lh_hf_slot_path(r, LH_HF_HIDDEN),
        .layers = lh_hf_slot_path(r, LH_HF_LAYERS),
        .heads = lh_hf_slot_path(r, LH_HF_HEADS),
        .groups = lh_hf_slot_path(r, LH_HF_GROUPS),
        .head_dim = lh_hf_slot_path(r, LH_HF_HEAD_DIM),
        .experts = lh_hf_slot_path(r, LH_HF_EXPERTS),
        .experts_per_token = lh_hf_slot_path(r, LH_HF_EXPERTS_PER_TOKEN),
    };
    drop_latent(r);
    if (!require(r, LH_HF_LAYERS, error))
        return false;
    m->num_layers = lh_hf_number(r, LH_HF_LAYERS);
    if (!read_heads(r, &keys, error) || !lh_hf_read_layers(r, error) || !lh_hf_read_mlp(r, error) ||
        !require(r, LH_HF_VOCAB, error))
        return false;
    fix_norms(r);
    read_rest(r);
    if (!lh_model_check(r->json, &keys, m, error))
        return false;
    m->name = name_of_file(file);
    m->description = g_strdup_printf("Hugging Face config.json, model type %s", r->model_type);
    m->source = g_strdup(file);
    return true;
}

bool
lh_model_read_hf(const LhJson *json, const char *file, const LhModelReading *how, LhModel *model,
                 GError **error)
{
    LhHfReader r = {
        .json = json,
        .how = how,
        .part = "",
        .model = model,
        .paths = g_ptr_array_new_with_free_func(g_free),
    };
    bool ok;

    model->notes = g_ptr_array_new_with_free_func(g_free);
    model->unused = g_ptr_array_new_with_free_func(g_free);
    ok = read_hf_model(&r, file, error);
    lh_hf_clear_values(&r);
    g_ptr_array_unref(r.paths);
    return ok;
}
