/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/megatron/megatron_model.h"

#include "base/files/data_files.h"
#include "base/json/json_encode.h"
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

/* Whether the same layers have experts, and shared experts have the same total width. */
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

/* Finds a model of models/ with this shape, whose vocabulary the tokenizer has. Caller frees. */
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

/* Length of the shortest prefix whose repetition gives @digits. */
static gsize
period_of(const char *digits)
{
    const gsize count = strlen(digits);
    gsize period = 1;

    while (count % period != 0 || strncmp(digits, digits + period, count - period) != 0)
        period++;
    return period;
}

/* Writes the layers without experts: leading ones, or a pattern. */
static void
fill_dense_layers(const LhMegatronShape *s, LhModel *m)
{
    const uint64_t first = strspn(s->dense, "0");
    const gsize period = period_of(s->dense);

    m->weights.dense_ffn_hidden_size = s->dense_ffn;
    if (strchr(s->dense + first, '0') == NULL) {
        m->weights.dense_layers = first;
        return;
    }
    m->layers = g_array_new(FALSE, FALSE, sizeof(LhLayerRun));
    for (gsize i = 0; i < period;) {
        const bool dense = s->dense[i] == '0';
        const LhLayerRun run = { .count = MIN(strspn(s->dense + i, dense ? "0" : "1"), period - i),
                                 .dense = dense };

        g_array_append_val(m->layers, run);
        i += run.count;
    }
}

static void
fill_experts(const LhMegatronShape *s, LhModel *m)
{
    const uint64_t shared = s->shared_ffn > 0 ? 1 : 0;

    m->num_experts = s->experts + shared;
    m->experts_per_token = (s->top != 0 ? s->top : 2) + shared;
    m->weights.shared_experts = shared;
    m->weights.shared_ffn_hidden_size = s->shared_ffn;
    if (s->dense != NULL)
        fill_dense_layers(s, m);
}

static void
write_model(LhConfig *c, const LhMegatronShape *s)
{
    static char name[] = "the model of the configuration", source[] = "the configuration";
    GString *text = g_string_new(NULL);
    LhModel m = {
        .name = name,
        .source = source,
        .num_layers = s->layers,
        .hidden_size = s->hidden,
        .num_attention_heads = s->heads,
        .num_query_groups = s->groups,
        .kv_channels = s->channels,
        .ffn_hidden_size = s->ffn,
        .gated_mlp = s->gated,
        .vocab_size = s->vocab,
        .tied_embeddings = !s->untied,
        .weights = { .qkv_bias = s->qkv_bias,
                     .biases = s->biases,
                     .qk_norm = s->qk_norm,
                     .learned_positions = s->positions },
    };

    if (s->experts > 0)
        fill_experts(s, &m);
    lh_json_encode_text(lh_model_fields, &m, text);
    g_clear_pointer(&m.layers, g_array_unref);
    c->model = g_string_free(text, FALSE);
}

/* Reads "--model org/Name", which programs based on Megatron-LM accept in place of sizes. */
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
                              "%.80s is not in longhaul list models; give its config.json", shown);
    return true;
}

/* Reports missing sizes that a model needs. */
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
            c, recipe, "it is in the recipe %.60s, a Python program; give its config.json", shown);
        return;
    }

    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        if (any == NULL)
            any = lh_config_entry(c, sizes[i].name);
        if (sizes[i].value == 0)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", sizes[i].name);
    }
    lh_config_lacks_model(c, any, "%s %s missing; add %s", names->str,
                          strchr(names->str, ',') != NULL ? "are" : "is",
                          strchr(names->str, ',') != NULL ? "them" : "it");
}

/* Names the model of a shape: with its vocabulary, or a known model of this shape. */
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
                              "the vocabulary size of the tokenizer is unknown; add vocab-size");
        return true;
    }
    lh_config_note(
        c, lh_config_entry(c, "num-layers"),
        "the vocabulary size of the tokenizer is unknown; %s has the same shape and is used",
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
