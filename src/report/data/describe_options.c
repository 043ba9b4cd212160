/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options in words. The list of all schedules' options says what they are called and how they are
 * written; heads count as options too, because schedules may pad them.
 */
#include "report/data/describe_options.h"

#include "base/json/json_decode.h"
#include "base/json/json_encode.h"
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

/* One of the option, as JSON has it. */
static LhFieldMember
option_member(const LhOption *option, LhOptionValue value)
{
    LhFieldMember m = { .field = { .name = option->name, .flags = LH_FIELD_REQUIRED },
                        .text = lh_option_text(option, value) };

    switch (option->type) {
    case LH_OPTION_FLAG:
        m.field.type = LH_FIELD_BOOL;
        m.value.flag = value.first != 0;
        break;
    case LH_OPTION_COUNT:
        m.field.type = LH_FIELD_UINT;
        m.value.number = value.first;
        break;
    case LH_OPTION_SIZES: {
        const uint64_t sizes[] = { value.first, value.second };

        m.field.type = LH_FIELD_UINTS;
        m.value.uints = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        g_array_append_vals(m.value.uints, sizes, G_N_ELEMENTS(sizes));
        break;
    }
    case LH_OPTION_CHOICE:
    case LH_OPTION_GRID:
        m.field.type = LH_FIELD_STRING;
        m.value.string = lh_option_value_text(option, value);
        break;
    }
    return m;
}

static LhFieldMember
heads_member(guint i, const LhProgramParams *p)
{
    g_autofree char *name = g_strdelimit(g_strdup(head_counts[i].name), "_", '-');

    return (LhFieldMember){
        .field = { .name = head_counts[i].name, .type = LH_FIELD_UINT, .flags = LH_FIELD_REQUIRED },
        .value.number = heads_of(i, p),
        .text = g_strdup_printf("%s %u", name, heads_of(i, p)),
    };
}

GArray *
lh_options_members(const LhProgramParams *p, const LhProgramParams *base)
{
    const LhOption *const *options = lh_schedule_options();
    GArray *members = g_array_new(FALSE, TRUE, sizeof(LhFieldMember));

    for (guint i = 0; i < G_N_ELEMENTS(head_counts); i++) {
        const LhFieldMember m = heads_member(i, p);

        if (heads_of(i, p) != heads_of(i, base))
            g_array_append_val(members, m);
        else
            g_free(m.text);
    }
    for (; *options != NULL; options++) {
        if (differs(*options, p, base)) {
            const LhFieldMember m = option_member(*options, lh_option_get(p, *options));

            g_array_append_val(members, m);
        }
    }
    return members;
}

void
lh_options_json(LhJsonWriter *w, const LhProgramParams *p, const LhProgramParams *base)
{
    GArray *members = lh_options_members(p, base);

    lh_json_encode_list(w, members);
    lh_field_members_free(members);
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
