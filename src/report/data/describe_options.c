/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options as text. The table of all schedules' options has their names and formats. Heads count as
 * options, because schedules may pad them.
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

/* Whether @p has another value of the option than @base. */
static bool
differs(const LhOption *option, const LhProgramParams *p, const LhProgramParams *base)
{
    const LhOptionValue x = lh_option_get(p, option), y = lh_option_get(base, option);

    return lh_option_is_set(p, option) && (x.first != y.first || x.second != y.second);
}

char *
lh_describe_record(const LhProgram *program)
{
    return program->record == NULL ? g_strdup("") : g_strjoinv("; ", program->record);
}

/* ---- for machines ---- */

static void
add_member(GArray *members, const char *name, LhFieldType type, LhFieldMember member)
{
    member.field = (LhField){ .name = name, .type = type, .flags = LH_FIELD_REQUIRED };
    g_array_append_val(members, member);
}

static void
add_count(GArray *members, const char *name, uint64_t count)
{
    add_member(members, name, LH_FIELD_UINT, (LhFieldMember){ .value.number = count });
}

static void
add_word(GArray *members, const char *name, const char *word)
{
    add_member(members, name, LH_FIELD_STRING, (LhFieldMember){ .value.string = g_strdup(word) });
}

static void
add_size_pair(GArray *members, const char *name, LhOptionValue value)
{
    const uint64_t sizes[] = { value.first, value.second };
    LhFieldMember member = { .value.uints = g_array_new(FALSE, FALSE, sizeof(uint64_t)) };

    g_array_append_vals(member.value.uints, sizes, G_N_ELEMENTS(sizes));
    add_member(members, name, LH_FIELD_UINTS, member);
}

/* @text is the last option as typed; taken over. */
static void
set_text(GArray *members, char *text)
{
    g_array_index(members, LhFieldMember, members->len - 1).text = text;
}

static void
add_option(GArray *members, const LhOption *option, LhOptionValue value)
{
    g_autofree char *text = lh_option_value_text(option, value);

    switch (option->type) {
    case LH_OPTION_FLAG:
        add_member(members, option->name, LH_FIELD_BOOL,
                   (LhFieldMember){ .value.flag = value.first != 0 });
        break;
    case LH_OPTION_COUNT:
        add_count(members, option->name, value.first);
        break;
    case LH_OPTION_SIZES:
        add_size_pair(members, option->name, value);
        break;
    case LH_OPTION_CHOICE:
    case LH_OPTION_GRID:
        add_word(members, option->name, text);
        break;
    }
    set_text(members, lh_option_text(option, value));
}

static void
add_heads(GArray *members, guint i, const LhProgramParams *p)
{
    g_autofree char *name = g_strdelimit(g_strdup(head_counts[i].name), "_", '-');

    add_count(members, head_counts[i].name, heads_of(i, p));
    set_text(members, g_strdup_printf("%s %u", name, heads_of(i, p)));
}

static void
add_options(GArray *members, const LhProgramParams *p, const LhProgramParams *base)
{
    const LhOption *const *options = lh_schedule_options();

    for (guint i = 0; i < G_N_ELEMENTS(head_counts); i++) {
        if (heads_of(i, p) != heads_of(i, base))
            add_heads(members, i, p);
    }
    for (; *options != NULL; options++) {
        if (differs(*options, p, base))
            add_option(members, *options, lh_option_get(p, *options));
    }
}

GArray *
lh_option_members(const LhProgramParams *p, const LhProgramParams *base)
{
    GArray *members = g_array_new(FALSE, TRUE, sizeof(LhFieldMember));

    add_options(members, p, base);
    return members;
}

char *
lh_describe_options(const LhProgramParams *p, const LhProgramParams *base)
{
    GArray *members = lh_option_members(p, base);
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < members->len; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? "; " : "",
                               g_array_index(members, LhFieldMember, i).text);
    lh_field_members_free(members);
    return g_string_free(out, FALSE);
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
add_mask(GArray *members, const LhMaskRule *rule)
{
    add_word(members, "mask", rule->causal ? "causal" : "full");
    if (rule->window != 0)
        add_count(members, "window_size", rule->window);
    if (rule->documents_count != 0)
        add_count(members, "documents", rule->documents_count);
}

static void
add_shape(GArray *members, const LhAttention *a)
{
    add_count(members, "seq_length", a->seq_length);
    add_count(members, "micro_batch_size", a->batch);
    add_count(members, "num_attention_heads", a->heads);
    add_count(members, "num_query_groups", a->groups);
    add_count(members, "kv_channels", a->head_dim);
    if (a->hidden_size != 0)
        add_count(members, "hidden_size", a->hidden_size);
    add_word(members, "dtype", lh_dtype_names[a->dtype]);
    add_word(members, "attention", a->linear ? "linear" : "softmax");
    if (a->decay != 0)
        add_member(members, "linear_decay", LH_FIELD_DOUBLE,
                   (LhFieldMember){ .value.real = a->decay });
}

GArray *
lh_params_members(const LhProgramParams *p)
{
    GArray *members = g_array_new(FALSE, TRUE, sizeof(LhFieldMember));

    add_count(members, "ranks", lh_params_ranks(p));
    add_word(members, "pass", lh_pass_names[p->pass - 1]);
    if (p->data_parallel_size > 1)
        add_count(members, "data_parallel_size", p->data_parallel_size);
    add_shape(members, &p->attention);
    add_mask(members, &p->mask);
    add_options(members, p, &(LhProgramParams){ .attention = p->attention });
    return members;
}
