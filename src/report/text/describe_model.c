/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_model.h"

#include "model/parameters.h"
#include "report/base/text.h"

#include <inttypes.h>

static G_GNUC_PRINTF(3, 4) void add_fact(LhTable *table, const char *name, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_table_cell(table, text, NULL);
}

static void
add_layers(LhTable *table, const LhModel *m)
{
    const uint64_t linear = lh_model_count(m, LH_LAYER_LINEAR), softmax = m->num_layers - linear;
    const uint64_t windowed = lh_model_windowed(m), dense = lh_model_dense(m);

    add_fact(table, "layers", "%" PRIu64, m->num_layers);
    add_fact(table, "softmax layers", "%" PRIu64, softmax);
    add_fact(table, "linear layers", "%" PRIu64, linear);
    if (windowed > 0)
        add_fact(table, "layers with a window", "%" PRIu64 " of %" PRIu64 " tokens", windowed,
                 m->sliding_window);
    if (m->chunk_size > 0) {
        uint64_t chunked = 0;

        for (uint64_t i = 0; i < m->num_layers; i++)
            chunked += lh_model_layer(m, i)->whole ? 0 : 1;
        add_fact(table, "layers with chunks", "%" PRIu64 " of %" PRIu64 " tokens", chunked,
                 m->chunk_size);
    }
    if (m->num_experts > 0) {
        add_fact(table, "layers with experts", "%" PRIu64, m->num_layers - dense);
        add_fact(table, "layers without experts", "%" PRIu64, dense);
    }
    add_fact(table, "mask", "%s", m->bidirectional ? "full" : "causal");
}

static void
add_shape(LhTable *table, const LhModel *m)
{
    add_fact(table, "hidden size", "%" PRIu64, m->hidden_size);
    add_fact(table, "query heads", "%" PRIu64, m->num_attention_heads);
    add_fact(table, "key-value heads", "%" PRIu64, m->num_query_groups);
    add_fact(table, "head dimension", "%" PRIu64 "%s", m->kv_channels,
             m->weights.attention_parameters > 0 ? " (latent attention: the mean of q and k, v)"
                                                 : "");
    add_fact(table, m->num_experts > 0 ? "width of an expert" : "width of the MLP",
             "%" PRIu64 ", %s", m->ffn_hidden_size, m->gated_mlp ? "gated" : "not gated");
    if (m->num_experts > 0) {
        add_fact(table, "experts", "%" PRIu64 ", active per token: %" PRIu64,
                 m->num_experts - m->weights.shared_experts,
                 m->experts_per_token - m->weights.shared_experts);
        add_fact(table, "shared experts", "%" PRIu64 " of %" PRIu64, m->weights.shared_experts,
                 m->weights.shared_ffn_hidden_size > 0 ? m->weights.shared_ffn_hidden_size
                                                       : m->ffn_hidden_size);
    }
    add_fact(table, "vocabulary", "%" PRIu64 "%s", m->vocab_size,
             m->tied_embeddings ? ", embeddings tied" : "");
}

LhTable *
lh_model_table(const LhModel *m)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "fact", "fact", NULL, false);
    lh_table_column(table, "value", "value", NULL, false);
    add_fact(table, "model", "%s", m->name);
    if (m->description != NULL)
        add_fact(table, "description", "%s", m->description);
    add_layers(table, m);
    add_shape(table, m);
    add_fact(table, "parameters", "%" PRIu64, lh_model_parameters(m));
    add_fact(table, "active parameters", "%" PRIu64, lh_model_active_parameters(m));
    for (guint i = 0; m->notes != NULL && i < m->notes->len; i++)
        add_fact(table, "note", "%s", (const char *)g_ptr_array_index(m->notes, i));
    if (m->refusal != NULL)
        add_fact(table, "not predicted", "%s", m->refusal);
    if (m->unused != NULL && m->unused->len > 0) {
        g_autoptr(GString) keys = g_string_new(NULL);

        for (guint i = 0; i < m->unused->len; i++)
            g_string_append_printf(keys, "%s%s", i > 0 ? ", " : "",
                                   (const char *)g_ptr_array_index(m->unused, i));
        add_fact(table, "unused keys", "%s", keys->str);
    }
    return table;
}
