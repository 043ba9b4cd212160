/* One table says which parameters are options, what they are called and how they are written. */
#include "report/describe_options.h"

#include <stddef.h>
#include <string.h>

typedef enum {
    NUMBER,    /* uint32_t */
    FLAG,      /* bool */
    GRID,      /* rows and columns, uint32_t each */
    SIZES,     /* uint32_t; the ranks divided by it stand beside it */
    RECOMPUTE, /* uint8_t */
} Kind;

typedef struct {
    const char *name; /* the scenario's */
    Kind kind;
    size_t offset, size;
} Option;

#define OPTION(name, kind, member)                                                                 \
    {                                                                                              \
        name, kind, offsetof(LhProgramParams, member), sizeof(((LhProgramParams *)NULL)->member)   \
    }

static const Option options[] = {
    OPTION("num_attention_heads", NUMBER, attention.heads),
    OPTION("num_query_groups", NUMBER, attention.groups),
    { "grid", GRID, offsetof(LhProgramParams, grid_rows), 2 * sizeof(uint32_t) },
    OPTION("hierarchical_context_parallel_sizes", SIZES, ulysses_size),
    OPTION("inner_ring", NUMBER, inner_ring),
    OPTION("gather_groups", NUMBER, gather_groups),
    OPTION("scan_blocks", NUMBER, scan_blocks),
    OPTION("local_kv", FLAG, local_kv),
    OPTION("gather_delta", FLAG, gather_delta),
    OPTION("state_recompute", FLAG, state_recompute),
    OPTION("unfused", FLAG, unfused),
    OPTION("pad_heads", FLAG, pad_heads),
    OPTION("recompute_granularity", RECOMPUTE, recompute),
};

G_STATIC_ASSERT(offsetof(LhProgramParams, grid_columns) ==
                offsetof(LhProgramParams, grid_rows) + sizeof(uint32_t));

static const void *
value_of(const Option *option, const LhProgramParams *p)
{
    return (const char *)p + option->offset;
}

static bool
differs(const Option *option, const LhProgramParams *p, const LhProgramParams *base)
{
    return memcmp(value_of(option, p), value_of(option, base), option->size) != 0;
}

static uint32_t
number_of(const Option *option, const LhProgramParams *p)
{
    return *(const uint32_t *)value_of(option, p);
}

/* "" for a flag that is set, "no" for one that is not; caller frees. */
static char *
text_of(const Option *option, const LhProgramParams *p)
{
    switch (option->kind) {
    case NUMBER:
        return g_strdup_printf("%u", number_of(option, p));
    case GRID:
        return g_strdup_printf("%ux%u", p->grid_rows, p->grid_columns);
    case SIZES:
        return g_strdup_printf("%u,%u", p->ulysses_size, p->ranks / MAX(p->ulysses_size, 1));
    case RECOMPUTE:
        return g_strdup(lh_recompute_names[p->recompute]);
    case FLAG:
        return g_strdup(*(const bool *)value_of(option, p) ? "" : "no");
    }
    g_assert_not_reached();
}

char *
lh_describe_options(const LhProgramParams *p, const LhProgramParams *base)
{
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(options); i++) {
        g_autofree char *name = g_strdelimit(g_strdup(options[i].name), "_", '-');
        g_autofree char *text = NULL;

        if (!differs(&options[i], p, base))
            continue;
        text = text_of(&options[i], p);
        g_string_append_printf(out, "%s%s%s%s", out->len > 0 ? "; " : "", name,
                               text[0] != '\0' ? " " : "", text);
    }
    return g_string_free(out, FALSE);
}

void
lh_options_json(LhJsonWriter *w, const LhProgramParams *p, const LhProgramParams *base)
{
    for (guint i = 0; i < G_N_ELEMENTS(options); i++) {
        const Option *option = &options[i];
        g_autofree char *text = NULL;

        if (!differs(option, p, base))
            continue;
        text = text_of(option, p);
        if (option->kind == NUMBER) {
            lh_jsonw_uint(w, option->name, number_of(option, p));
        } else if (option->kind == FLAG) {
            lh_jsonw_bool(w, option->name, *(const bool *)value_of(option, p));
        } else if (option->kind == SIZES) {
            lh_jsonw_array_begin(w, option->name);
            lh_jsonw_uint(w, NULL, p->ulysses_size);
            lh_jsonw_uint(w, NULL, p->ranks / MAX(p->ulysses_size, 1));
            lh_jsonw_array_end(w);
        } else {
            lh_jsonw_string(w, option->name, text);
        }
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
    lh_jsonw_bool(w, "overlap", p->overlap);
    lh_jsonw_bool(w, "published_code", p->published_code);
    lh_jsonw_string(w, "gradient_wire", lh_wire_names[p->gradient_wire]);
    lh_options_json(w, p, &plain);
}
