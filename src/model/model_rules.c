/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model_rules.h"

bool
lh_model_check(const LhJson *json, const LhModelKeys *keys, const LhModel *m, GError **error)
{
    if (m->num_attention_heads % m->num_query_groups != 0)
        return lh_json_error(json, keys->groups, error,
                             "\"%s\" is %" G_GUINT64_FORMAT ", which does not divide \"%s\" "
                             "%" G_GUINT64_FORMAT,
                             keys->groups, m->num_query_groups, keys->heads,
                             m->num_attention_heads);
    if (m->experts_per_token > m->num_experts)
        return lh_json_error(json, keys->experts_per_token, error,
                             "\"%s\" is %" G_GUINT64_FORMAT "; allowed: 1 to \"%s\" "
                             "%" G_GUINT64_FORMAT,
                             keys->experts_per_token, m->experts_per_token, keys->experts,
                             m->num_experts);
    if (m->weights.shared_experts > m->num_experts || m->weights.dense_layers > m->num_layers)
        return lh_json_error(json, keys->experts, error,
                             "%" G_GUINT64_FORMAT " shared experts of %" G_GUINT64_FORMAT
                             " experts and %" G_GUINT64_FORMAT " dense layers of %" G_GUINT64_FORMAT
                             " layers: a part cannot exceed the whole",
                             m->weights.shared_experts, m->num_experts, m->weights.dense_layers,
                             m->num_layers);
    if (m->num_experts > 0 && m->experts_per_token == 0)
        return lh_json_error(json, keys->experts, error, "\"%s\" needs \"%s\" beside it",
                             keys->experts, keys->experts_per_token);
    return true;
}

static bool
same_layer(const LhLayerRun *a, const LhLayerRun *b)
{
    return a->kind == b->kind && a->output_gate == b->output_gate && a->whole == b->whole &&
           a->dense == b->dense;
}

/*
 * The shortest period of the layers, in linear time: matched[i] is the length of the longest proper
 * border of layers 0 to i (the failure function of Knuth, Morris and Pratt).
 */
static guint
period_of_each(const GArray *each)
{
    g_autofree guint *matched = g_new0(guint, each->len + 1);
    guint length = 0, least = 1;

    for (guint i = 1; i < each->len; i++) {
        const LhLayerRun *layer = &g_array_index(each, LhLayerRun, i);

        while (length > 0 && !same_layer(layer, &g_array_index(each, LhLayerRun, length)))
            length = matched[length - 1];
        if (same_layer(layer, &g_array_index(each, LhLayerRun, length)))
            length++;
        matched[i] = length;
        least = i + 1 - length;
    }
    return each->len % least == 0 ? least : each->len;
}

void
lh_model_fold_layers(LhModel *m, const GArray *each)
{
    const guint period = period_of_each(each);

    m->layers = g_array_new(FALSE, FALSE, sizeof(LhLayerRun));
    for (guint i = 0; i < period; i++) {
        const LhLayerRun *layer = &g_array_index(each, LhLayerRun, i);
        LhLayerRun *last =
            m->layers->len == 0 ? NULL : &g_array_index(m->layers, LhLayerRun, m->layers->len - 1);

        if (last != NULL && same_layer(last, layer))
            last->count++;
        else
            g_array_append_vals(m->layers, layer, 1);
    }
}

void
lh_model_default_rotary(LhModel *m)
{
    const bool other = m->weights.learned_positions > 0 || lh_model_count(m, LH_LAYER_SOFTMAX) == 0;

    m->rotary_base = other ? 0 : LH_MODEL_ROTARY_BASE;
}

bool
lh_model_default_kv_channels(const LhJson *json, const LhModelKeys *keys, LhModel *m,
                             GError **error)
{
    if (m->hidden_size % m->num_attention_heads != 0)
        return lh_json_error(json, keys->heads, error,
                             "\"%s\" is %" G_GUINT64_FORMAT ", which does not divide \"%s\" "
                             "%" G_GUINT64_FORMAT "; give the head dimension, \"%s\"",
                             keys->heads, m->num_attention_heads, keys->hidden, m->hidden_size,
                             keys->head_dim);
    m->kv_channels = m->hidden_size / m->num_attention_heads;
    return true;
}
