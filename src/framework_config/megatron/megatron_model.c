/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/megatron/megatron_model.h"

#include "base/files/data_files.h"
#include "base/json/json_writer.h"
#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/common/published_model.h"
#include "framework_config/megatron/megatron_refusals.h"
#include "framework_config/megatron/megatron_shape.h"
#include "framework_config/megatron/megatron_vocabulary.h"
#include "model/model.h"
#include "model/model_file.h"

#include <string.h>

/* Whether the same layers have experts, and those beside which no router stands are as wide. */
static bool
has_experts_of(const LhModel *m, const LhMegatronShape *s)
{
    const LhModelWeights *w = &m->weights;
    const uint64_t each =
        w->shared_ffn_hidden_size != 0 ? w->shared_ffn_hidden_size : m->ffn_hidden_size;
    const uint64_t routed = m->num_experts - w->shared_experts;
    const uint64_t top = m->experts_per_token - w->shared_experts;

    if (routed != s->experts || w->shared_experts * each != s->shared_ffn ||
        (routed > 0 && top != (s->top != 0 ? s->top : 2)))
        return false;
    for (uint64_t i = 0; routed > 0 && i < m->num_layers; i++) {
        if ((i < w->dense_layers || lh_model_layer(m, i)->dense) !=
            (s->dense != NULL && s->dense[i] == '0'))
            return false;
    }
    return true;
}

/* A model of models/ that has this shape, for the vocabulary that the tokenizer has. Caller frees.
 */
static LhModel *
find_model(const LhMegatronShape *s)
{
    g_auto(GStrv) names = lh_data_list("models");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhModel) m = lh_model_load(names[i], NULL);

        if (m != NULL && m->num_layers == s->layers && m->hidden_size == s->hidden &&
            m->num_attention_heads == s->heads && m->num_query_groups == s->groups &&
            m->kv_channels == s->channels && m->ffn_hidden_size == s->ffn &&
            m->gated_mlp == s->gated && lh_model_count(m, LH_LAYER_LINEAR) == 0 &&
            has_experts_of(m, s))
            return g_steal_pointer(&m);
    }
    return NULL;
}

/* The shortest part of @digits whose repetition they are. */
static gsize
period_of(const char *digits)
{
    const gsize count = strlen(digits);
    gsize period = 1;

    while (count % period != 0 || strncmp(digits, digits + period, count - period) != 0)
        period++;
    return period;
}

/* Layers that have no experts: the first ones, or those of a pattern. */
static void
write_dense_layers(LhJsonWriter *w, const LhMegatronShape *s)
{
    const uint64_t first = strspn(s->dense, "0");
    const gsize period = period_of(s->dense);

    lh_jsonw_uint(w, "dense_ffn_hidden_size", s->dense_ffn);
    if (strchr(s->dense + first, '0') == NULL) {
        lh_jsonw_uint(w, "dense_layers", first);
        return;
    }
    lh_jsonw_array_begin(w, "layers");
    for (gsize i = 0; i < period;) {
        const bool dense = s->dense[i] == '0';
        const gsize count = MIN(strspn(s->dense + i, dense ? "0" : "1"), period - i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "attention", lh_layer_kind_names[LH_LAYER_SOFTMAX]);
        lh_jsonw_uint(w, "count", count);
        if (dense)
            lh_jsonw_bool(w, "dense", true);
        lh_jsonw_object_end(w);
        i += count;
    }
    lh_jsonw_array_end(w);
}

static void
write_experts(LhJsonWriter *w, const LhMegatronShape *s)
{
    const uint64_t shared = s->shared_ffn > 0 ? 1 : 0;

    lh_jsonw_uint(w, "num_experts", s->experts + shared);
    lh_jsonw_uint(w, "experts_per_token", (s->top != 0 ? s->top : 2) + shared);
    if (shared > 0) {
        lh_jsonw_uint(w, "shared_experts", shared);
        lh_jsonw_uint(w, "shared_ffn_hidden_size", s->shared_ffn);
    }
    if (s->dense != NULL)
        write_dense_layers(w, s);
}

static void
write_model(LhConfig *c, const LhMegatronShape *s)
{
    g_autoptr(GString) text = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(text, false);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.model/1");
    lh_jsonw_string(w, "name", "the model of the configuration");
    lh_jsonw_string(w, "source", "the configuration");
    lh_jsonw_uint(w, "num_layers", s->layers);
    lh_jsonw_uint(w, "hidden_size", s->hidden);
    lh_jsonw_uint(w, "num_attention_heads", s->heads);
    lh_jsonw_uint(w, "num_query_groups", s->groups);
    lh_jsonw_uint(w, "kv_channels", s->channels);
    lh_jsonw_uint(w, "ffn_hidden_size", s->ffn);
    lh_jsonw_bool(w, "gated_mlp", s->gated);
    if (s->experts > 0)
        write_experts(w, s);
    if (s->qkv_bias)
        lh_jsonw_bool(w, "qkv_bias", true);
    if (s->biases)
        lh_jsonw_bool(w, "biases", true);
    if (s->qk_norm)
        lh_jsonw_bool(w, "qk_norm", true);
    if (s->positions > 0)
        lh_jsonw_uint(w, "learned_positions", s->positions);
    lh_jsonw_uint(w, "vocab_size", s->vocab);
    lh_jsonw_bool(w, "tied_embeddings", !s->untied);
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    c->model = g_string_free(g_steal_pointer(&text), FALSE);
}

/* "--model org/Name", as what is built on Megatron-LM has it in place of sizes. */
static bool
take_published(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "model");
    const char *published = "";
    g_autofree char *model = NULL;
    g_autofree char *shown = NULL;

    if (!lh_config_word(c, "model", &published, error))
        return false;
    model = lh_config_model_of(published);
    shown = g_strescape(published, NULL);
    if (model != NULL)
        lh_config_set(c, entry, LH_CONFIG_QUESTION, "model", model);
    else
        lh_config_lacks_model(c, entry,
                              "%.80s is none of longhaul list models; give its config.json", shown);
    return true;
}

/* Which of the sizes that a model cannot do without are not there. */
static void
lacks_sizes(LhConfig *c, const LhMegatronShape *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = { { "num-layers", s->layers },
                  { "hidden-size", s->hidden },
                  { "num-attention-heads", s->heads } };
    g_autoptr(GString) names = g_string_new(NULL);
    const LhSettingsEntry *any = NULL, *recipe = lh_config_entry(c, "recipe");

    if (recipe != NULL) {
        g_autofree char *text = lh_settings_entry_text(recipe);
        g_autofree char *shown = g_strescape(text, NULL);

        lh_config_lacks_model(
            c, recipe, "it is in the recipe %.60s, a program in Python; give its config.json",
            shown);
        return;
    }

    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        if (any == NULL)
            any = lh_config_entry(c, sizes[i].name);
        if (sizes[i].value == 0)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", sizes[i].name);
    }
    lh_config_lacks_model(c, any, "%s %s not there; add %s", names->str,
                          strchr(names->str, ',') != NULL ? "are" : "is",
                          strchr(names->str, ',') != NULL ? "them" : "it");
}

/* The model of a shape that is read: by its vocabulary, or one that is known. */
static bool
name_model(LhConfig *c, LhMegatronShape *s, GError **error)
{
    g_autoptr(LhModel) known = NULL;

    lh_config_megatron_fill_shape(c, s);
    if (!lh_config_megatron_take_deepspeed_experts(c, s, error) ||
        !lh_config_megatron_take_dense_layers(c, s, error) ||
        !lh_config_megatron_take_shared_experts(c, s, error))
        return false;
    lh_config_megatron_read_tokenizer(c, s);
    if (!lh_config_megatron_pad_vocabulary(c, s, error))
        return false;
    if (s->vocab != 0) {
        write_model(c, s);
        return true;
    }
    known = find_model(s);
    if (known == NULL) {
        lh_config_lacks_model(c, lh_config_entry(c, "num-layers"),
                              "how many words the tokenizer has is not said; add vocab-size");
        return true;
    }
    lh_config_note(c, lh_config_entry(c, "num-layers"),
                   "how many words the tokenizer has is not said; the shape is that of %s, which "
                   "is taken",
                   known->name);
    lh_config_set(c, lh_config_entry(c, "num-layers"), LH_CONFIG_QUESTION, "model", known->name);
    return true;
}

bool
lh_config_megatron_take_model(LhConfig *c, GError **error)
{
    LhMegatronShape s = { .layers = 0 };
    bool ok;

    if (!lh_config_megatron_refuse_program(c, error) ||
        !lh_config_megatron_refuse_stacks(c, error) ||
        !lh_config_megatron_refuse_layers(c, error) || !lh_config_megatron_read_shape(c, &s, error))
        return false;
    if (s.layers == 0 && lh_config_entry(c, "model") != NULL && c->arguments)
        return take_published(c, error);
    if (s.layers == 0 || s.hidden == 0 || s.heads == 0) {
        lacks_sizes(c, &s);
        return true;
    }
    ok = name_model(c, &s, error);
    g_free(s.dense);
    return ok;
}
