/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/setup_model.h"

#include "model/huggingface.h"
#include "model/model_file.h"
#include "scenario/setup.h"
#include "scenario/setup_inputs.h"

#include <string.h>

bool
lh_setup_has_sizes(const LhScenario *s)
{
    return s->num_attention_heads != 0 || s->num_query_groups != 0 || s->kv_channels != 0;
}

bool
lh_setup_takes_default_model(const LhScenario *s)
{
    return s->model == NULL && s->model_text == NULL && !lh_setup_has_sizes(s);
}

/* A model with the given attention sizes alone. The head dimension defaults to that of most
 * models. */
static LhModel *
model_of_sizes(const LhScenario *s, GError **error)
{
    const uint64_t groups = s->num_query_groups, channels = s->kv_channels;
    g_autofree char *text = NULL;

    if (s->step) {
        lh_scenario_error(
            s,
            s->num_attention_heads != 0 ? "num_attention_heads"
            : groups != 0               ? "num_query_groups"
                                        : "kv_channels",
            error, "a training step needs a whole model, and this is one size: give --model, too");
        return NULL;
    }
    if (s->num_attention_heads == 0) {
        lh_scenario_error(s, groups != 0 ? "num_query_groups" : "kv_channels", error,
                          "the number of heads is missing: give --num-attention-heads, or --model");
        return NULL;
    }
    text = g_strdup_printf("{\"schema\": \"longhaul.model/1\", \"name\": \"the sizes given%s\", "
                           "\"source\": \"options\", \"num_layers\": 1, "
                           "\"hidden_size\": 1, \"num_attention_heads\": %" G_GUINT64_FORMAT ", "
                           "\"num_query_groups\": %" G_GUINT64_FORMAT
                           ", \"kv_channels\": %" G_GUINT64_FORMAT ", "
                           "\"ffn_hidden_size\": 1, \"gated_mlp\": true, \"vocab_size\": 1, "
                           "\"tied_embeddings\": false}",
                           channels != 0 ? "" : ", with heads as wide as most models have them",
                           s->num_attention_heads, s->num_attention_heads,
                           channels != 0 ? channels : LH_DEFAULT_KV_CHANNELS);
    return lh_model_parse("the sizes given", text, strlen(text), error);
}

/* --assume and --ignore-key need a config.json. */
static bool
check_reading(const LhScenario *s, GError **error)
{
    const char *field = s->assume != NULL ? "assume" : s->ignore_key != NULL ? "ignore_key" : NULL;

    if (field == NULL)
        return true;
    return lh_scenario_error(s, field, error, "it applies to the config.json of --model, and %s",
                             s->model_text != NULL
                                 ? "here the configuration itself gives the model's shape"
                             : lh_setup_has_sizes(s) ? "here sizes are given in place of a model"
                                                     : "no model is given");
}

LhModel *
lh_setup_load_model(const LhScenario *s, GError **error)
{
    const char *name = s->model != NULL ? s->model : LH_DEFAULT_MODEL;
    const LhModelReading how = { .assume = s->assume, .ignored = s->ignore_key };

    if (s->model == NULL && !check_reading(s, error))
        return NULL;
    if (s->model == NULL && s->model_text != NULL)
        return lh_model_parse(s->model_file, s->model_text, strlen(s->model_text), error);
    if (s->model == NULL && lh_setup_has_sizes(s))
        return model_of_sizes(s, error);
    if (!lh_model_is_folder(name) && !lh_setup_check_name(s, "model", "models", name, error))
        return NULL;
    return lh_model_load_as(name, &how, error);
}
