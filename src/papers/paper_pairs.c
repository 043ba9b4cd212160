/* SPDX-License-Identifier: Apache-2.0 */
#include "papers/paper_pairs.h"

#include <math.h>
#include <string.h>

/* Options that describe how the work is divided, and by which framework, in addition to the options
 * of schedules. */
static const char *const ways[] = {
    "schedule",
    "framework",
    "attention_kernel",
    "tensor_model_parallel_size",
    "context_parallel_size",
    "data_parallel_size",
    "pipeline_model_parallel_size",
    "num_layers_per_virtual_pipeline_stage",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "pipeline_schedule",
    "shard",
    "checkpoint",
    "recompute_modules",
    "recompute_method",
    "recompute_num_layers",
    "loss",
    "tiled_mlp",
    "main_params_dtype",
    "main_grads_dtype",
    "exp_avg_dtype",
    "optimizer",
    "muon_num_ns_steps",
    "muon_tp_mode",
    "muon_momentum",
    "muon_nesterov",
    "muon_scale_mode",
    "muon_extra_scale_factor",
    "muon_coefficient_type",
    "lora_rank",
    "lora_targets",
    "pad",
    NULL,
};

static bool
is_way(const char *name)
{
    const LhField *fields = lh_scenario_fields();

    for (; fields->name != NULL; fields++) {
        if (strcmp(fields->name, name) == 0)
            return (fields->flags & LH_SCENARIO_OF_SCHEDULES) != 0 || g_strv_contains(ways, name);
    }
    return false;
}

static int
compare_texts(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The case's metric and other options, sorted, as a key; caller frees. */
static char *
question_of(const LhPaperCase *c)
{
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < c->options->names->len; i++) {
        const char *name = g_ptr_array_index(c->options->names, i);
        const char *value = g_ptr_array_index(c->options->values, i);

        if (!is_way(name))
            g_ptr_array_add(said, g_strconcat(name, "=", value, NULL));
    }
    g_ptr_array_sort(said, compare_texts);
    g_string_printf(text, "%u", c->metric);
    for (guint i = 0; i < said->len; i++)
        g_string_append_printf(text, "\n%s", (const char *)g_ptr_array_index(said, i));
    return g_string_free(text, FALSE);
}

static bool
takes_part(const LhPaper *paper, const LhPaperCase *c, int metric)
{
    return (metric < 0 || c->metric == (guint)metric) && c->state == LH_CASE_JUDGED &&
           c->published_fits && c->predicted_fits &&
           !g_array_index(paper->metrics, LhPaperMetric, c->metric).at_least;
}

/* Whether two cases with the same key differ in how the work is divided and in the published
 * number. */
static bool
is_pair(const LhPaperCase *a, const LhPaperCase *b)
{
    g_autofree char *way = NULL;
    g_autofree char *other = NULL;

    if (fabs(a->published - b->published) <= LH_PAIR_APART * fmin(a->published, b->published))
        return false;
    way = lh_paper_options_text(a->options);
    other = lh_paper_options_text(b->options);
    return strcmp(way, other) != 0;
}

void
lh_paper_pairs(const LhPaper *paper, const GPtrArray *cases, int metric, guint *pairs,
               guint *in_order)
{
    g_autoptr(GHashTable) answers = /* cases so far, by key */
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);

    *pairs = *in_order = 0;
    for (guint i = 0; i < cases->len; i++) {
        LhPaperCase *c = g_ptr_array_index(cases, i);
        g_autofree char *question = NULL;
        GPtrArray *others;

        if (!takes_part(paper, c, metric))
            continue;
        question = question_of(c);
        others = g_hash_table_lookup(answers, question);
        if (others == NULL) {
            others = g_ptr_array_new();
            g_hash_table_insert(answers, g_steal_pointer(&question), others);
        }
        for (guint j = 0; j < others->len; j++) {
            const LhPaperCase *other = g_ptr_array_index(others, j);

            if (!is_pair(c, other))
                continue;
            ++*pairs;
            *in_order += (c->published - other->published) * (c->predicted - other->predicted) > 0;
        }
        g_ptr_array_add(others, c);
    }
}
