/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options in words. The list of all schedules' options says what they are called and how they are
 * written; heads count as options too, because schedules may pad them.
 */
#include "report/data/describe_options.h"

#include "base/units.h"

#include "sched/schedule.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
} head_counts[] = {
    { "num_attention_heads", offsetof(LhAttention, heads) },
    { "num_query_groups", offsetof(LhAttention, groups) },
};

static uint32_t
heads_of(guint i, const LhProgramParams *p)
{
    return *(const uint32_t *)(const void *)((const char *)&p->attention + head_counts[i].offset);
}

/* Whether @p has the option, and not as @base has it. */
static bool
differs(const LhOption *option, const LhProgramParams *p, const LhProgramParams *base)
{
    const LhOptionValue x = lh_option_get(p, option), y = lh_option_get(base, option);

    return lh_option_is_set(p, option) && (x.first != y.first || x.second != y.second);
}

static void
append_text(GString *out, const char *text)
{
    g_string_append_printf(out, "%s%s", out->len > 0 ? "; " : "", text);
}

char *
lh_describe_options(const LhProgramParams *p, const LhProgramParams *base)
{
    const LhOption *const *options = lh_schedule_options();
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(head_counts); i++) {
        g_autofree char *name = g_strdelimit(g_strdup(head_counts[i].name), "_", '-');
        g_autofree char *text = g_strdup_printf("%s %u", name, heads_of(i, p));

        if (heads_of(i, p) != heads_of(i, base))
            append_text(out, text);
    }
    for (; *options != NULL; options++) {
        g_autofree char *text = lh_option_text(*options, lh_option_get(p, *options));

        if (differs(*options, p, base))
            append_text(out, text);
    }
    return g_string_free(out, FALSE);
}

char *
lh_describe_record(const LhProgram *program)
{
    return program->record == NULL ? g_strdup("") : g_strjoinv("; ", program->record);
}

static void
write_option(LhJsonWriter *w, const LhOption *option, LhOptionValue value)
{
    g_autofree char *text = lh_option_value_text(option, value);

    switch (option->type) {
    case LH_OPTION_FLAG:
        lh_jsonw_bool(w, option->name, value.first != 0);
        break;
    case LH_OPTION_COUNT:
        lh_jsonw_uint(w, option->name, value.first);
        break;
    case LH_OPTION_SIZES:
        lh_jsonw_array_begin(w, option->name);
        lh_jsonw_uint(w, NULL, value.first);
        lh_jsonw_uint(w, NULL, value.second);
        lh_jsonw_array_end(w);
        break;
    case LH_OPTION_CHOICE:
    case LH_OPTION_GRID:
        lh_jsonw_string(w, option->name, text);
        break;
    }
}

void
lh_options_json(LhJsonWriter *w, const LhProgramParams *p, const LhProgramParams *base)
{
    const LhOption *const *options = lh_schedule_options();

    for (guint i = 0; i < G_N_ELEMENTS(head_counts); i++) {
        if (heads_of(i, p) != heads_of(i, base))
            lh_jsonw_uint(w, head_counts[i].name, heads_of(i, p));
    }
    for (; *options != NULL; options++) {
        if (differs(*options, p, base))
            write_option(w, *options, lh_option_get(p, *options));
    }
}

char *
lh_describe_groups(const LhProgramParams *p)
{
    const char *plural = p->ranks == 1 ? "" : "s";

    if (p->data_parallel_size > 1)
        return g_strdup_printf("%u groups of %u rank%s (data parallel)", p->data_parallel_size,
                               p->ranks, plural);
    return g_strdup_printf("%u rank%s", p->ranks, plural);
}

char *
lh_describe_mask(const LhMaskRule *rule)
{
    GString *out = g_string_new(rule->causal ? "causal" : "full mask");

    if (rule->window != 0) {
        g_autofree char *window = lh_format_count(rule->window);

        g_string_append_printf(out, ", window %s", window);
    }
    if (rule->documents_count > 0)
        g_string_append_printf(out, ", %u document%s", rule->documents_count,
                               rule->documents_count == 1 ? "" : "s");
    return g_string_free(out, FALSE);
}

static void
write_mask(LhJsonWriter *w, const LhMaskRule *rule)
{
    lh_jsonw_string(w, "mask", rule->causal ? "causal" : "full");
    if (rule->window != 0)
        lh_jsonw_uint(w, "window_size", rule->window);
    if (rule->documents_count != 0)
        lh_jsonw_uint(w, "documents", rule->documents_count);
}

void
lh_params_json(LhJsonWriter *w, const LhProgramParams *p)
{
    const LhAttention *a = &p->attention;
    const LhProgramParams plain = { .attention = *a };

    if (p->data_parallel_size > 1)
        lh_jsonw_uint(w, "data_parallel_size", p->data_parallel_size);
    lh_jsonw_uint(w, "seq_length", a->seq_length);
    lh_jsonw_uint(w, "micro_batch_size", a->batch);
    lh_jsonw_uint(w, "num_attention_heads", a->heads);
    lh_jsonw_uint(w, "num_query_groups", a->groups);
    lh_jsonw_uint(w, "kv_channels", a->head_dim);
    if (a->hidden_size != 0)
        lh_jsonw_uint(w, "hidden_size", a->hidden_size);
    lh_jsonw_string(w, "dtype", lh_dtype_names[a->dtype]);
    lh_jsonw_string(w, "attention", a->linear ? "linear" : "softmax");
    if (a->decay != 0)
        lh_jsonw_double(w, "linear_decay", a->decay);
    write_mask(w, &p->mask);
    lh_options_json(w, p, &plain);
}
