/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads longhaul's own model files; huggingface.c reads Hugging Face's. Both apply the same checks
 * (lh_model_check).
 */
#include "model/model_file.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "model/model_rules.h"

/* Checks that the pattern of layers divides num_layers. The default is softmax attention in all
 * layers. */
static bool
complete_layers(const LhJson *json, LhModel *m, GError **error)
{
    const LhLayerRun all = { .kind = LH_LAYER_SOFTMAX, .count = 1 };

    if (m->layers == NULL) {
        m->layers = g_array_new(FALSE, FALSE, sizeof(LhLayerRun));
        g_array_append_val(m->layers, all);
    }
    if (m->num_layers % lh_model_period(m) == 0)
        return true;
    return lh_json_error(json, "layers", error,
                         "\"layers\" has %" G_GUINT64_FORMAT
                         " layers, which does not divide \"num_layers\" %" G_GUINT64_FORMAT,
                         lh_model_period(m), m->num_layers);
}

static bool
read_own(const LhJson *json, LhModel *model, GError **error)
{
    static const LhModelKeys keys = {
        .hidden = "hidden_size",
        .layers = "num_layers",
        .heads = "num_attention_heads",
        .groups = "num_query_groups",
        .head_dim = "kv_channels",
        .experts = "num_experts",
        .experts_per_token = "experts_per_token",
    };

    if (!lh_json_decode(json, lh_model_fields, model, false, error))
        return false;
    if (!complete_layers(json, model, error))
        return false;
    if (!lh_json_has(json, "rotary_base"))
        lh_model_default_rotary(model);
    if (model->num_query_groups == 0)
        model->num_query_groups = model->num_attention_heads;
    if (model->kv_channels == 0 && !lh_model_default_kv_channels(json, &keys, model, error))
        return false;
    return lh_model_check(json, &keys, model, error);
}

/* Rejects --assume and --ignore-key: all fields of longhaul's own files are read. */
static bool
check_plain(const LhJson *json, const LhModelReading *how, GError **error)
{
    if (how == NULL || (how->assume == NULL && how->ignored == NULL))
        return true;
    return lh_json_error(
        json, "schema", error,
        "%s applies to Hugging Face's config.json, and this is one of longhaul's own model files",
        how->assume != NULL ? "--assume" : "--ignore-key");
}

static LhModel *
read_model(const char *file, const LhJson *json, const LhModelReading *how, GError **error)
{
    g_autoptr(LhModel) model = g_new0(LhModel, 1);
    const bool own = lh_json_has(json, "schema");

    if (!(own ? check_plain(json, how, error) && lh_json_check_strict(json, error) &&
                    read_own(json, model, error)
              : lh_model_read_hf(json, file, how, model, error)))
        return NULL;
    model->sha256 = g_strdup(lh_json_sha256(json));
    return g_steal_pointer(&model);
}

LhModel *
lh_model_parse(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse_python(file, text, length, error);

    return json == NULL ? NULL : read_model(file, json, NULL, error);
}

bool
lh_model_is_folder(const char *name)
{
    g_autofree char *file = NULL;

    if (!g_file_test(name, G_FILE_TEST_IS_DIR))
        return false;
    file = strchr(name, '/') == NULL ? lh_data_find("models", name, NULL) : NULL;
    return file == NULL;
}

LhModel *
lh_model_load_as(const char *name, const LhModelReading *how, GError **error)
{
    const bool folder = lh_model_is_folder(name);
    g_autofree char *path =
        folder ? g_build_filename(name, "config.json", NULL) : lh_data_find("models", name, error);
    g_autoptr(LhJson) json = path == NULL ? NULL : lh_json_load_python(path, error);

    return json == NULL ? NULL : read_model(path, json, how, error);
}

LhModel *
lh_model_load(const char *name, GError **error)
{
    return lh_model_load_as(name, NULL, error);
}
