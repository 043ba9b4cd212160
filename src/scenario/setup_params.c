/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/setup_params.h"

#include "base/error.h"
#include "scenario/scenario_options.h"
#include "scenario/setup.h"

/* Suggests other values for the number that was given: groups that divide the heads, or heads that
 * the groups divide. */
static bool
refuse_groups(const LhScenario *s, uint64_t heads, uint64_t groups, GError **error)
{
    g_autofree char *near = NULL;
    uint32_t below, above;

    if (s->num_query_groups != 0) {
        lh_divisors_near((uint32_t)heads, (uint32_t)groups, (uint32_t)heads, &below, &above);
        near = lh_near_text(below, above);
    } else {
        near = lh_near_text(heads / groups * groups, (heads / groups + 1) * groups);
    }
    return lh_scenario_error(
        s, s->num_query_groups != 0 ? "num_query_groups" : "num_attention_heads", error,
        "%" G_GUINT64_FORMAT " key-value heads do not divide %" G_GUINT64_FORMAT
        " query heads; nearest legal numbers: %s",
        groups, heads, near);
}

static bool
fill_heads(const LhScenario *s, const LhModel *model, LhAttention *a, GError **error)
{
    const uint64_t heads =
        s->num_attention_heads != 0 ? s->num_attention_heads : model->num_attention_heads;
    uint64_t groups = s->num_query_groups;

    /* As in Megatron-LM, the number of heads alone also sets the groups; a model with grouped heads
     * keeps its groups. */
    if (groups == 0)
        groups =
            s->num_attention_heads != 0 && model->num_query_groups == model->num_attention_heads
                ? heads
                : model->num_query_groups;
    if (groups > heads || heads % groups != 0)
        return refuse_groups(s, heads, groups, error);
    a->heads = (uint32_t)heads;
    a->groups = (uint32_t)groups;
    a->head_dim = (uint32_t)(s->kv_channels != 0 ? s->kv_channels : model->kv_channels);
    /* With other heads this is another model: its hidden size follows them. */
    if (s->num_attention_heads == 0 && s->kv_channels == 0)
        a->hidden_size = (uint32_t)model->hidden_size;
    return true;
}

bool
lh_setup_is_linear(const LhScenario *s, const LhModel *model)
{
    bool needed = false;

    if (s->attention >= 0)
        return s->attention == 1;
    if (s->model != NULL || s->model_text != NULL || s->schedule == NULL)
        return lh_model_count(model, LH_LAYER_LINEAR) == model->num_layers;
    for (guint i = 0; i < s->schedule->len; i++) {
        const LhSchedule *schedule = lh_schedule_find(g_ptr_array_index(s->schedule, i), NULL);

        if (schedule == NULL || !lh_schedule_takes(schedule, true))
            return false;
        needed |= !lh_schedule_takes(schedule, false);
    }
    return needed;
}

/* Documents that are given, not drawn; NULL: none. */
static const LhDocuments *
documents_of(const LhScenario *s, const LhSources *from)
{
    return s->document_distribution == NULL ? from->documents : NULL;
}

static bool
fill_attention(const LhScenario *s, const LhSources *from, uint32_t ranks, LhAttention *a,
               GError **error)
{
    const LhDocuments *documents = documents_of(s, from);
    const uint64_t packed = documents == NULL ? 0 : documents->ends[documents->count - 1];

    a->batch = (uint32_t)MAX(s->micro_batch_size, 1);
    a->seq_length = s->seq_length != 0 ? s->seq_length
                    : packed != 0      ? packed
                                       : (uint64_t)LH_DEFAULT_TOKENS_PER_RANK * ranks;
    if (packed != 0 && packed != a->seq_length)
        return lh_scenario_error(s, "document_lengths", error,
                                 "the documents of %s have %" G_GUINT64_FORMAT
                                 " tokens, the sequence has %" G_GUINT64_FORMAT,
                                 s->document_lengths, packed, a->seq_length);
    a->dtype = s->dtype < 0 ? LH_DTYPE_BF16 : (LhDtype)s->dtype;
    a->linear = lh_setup_is_linear(s, from->model);
    a->decay = s->linear_decay;
    if (!a->linear && a->decay != 0)
        return lh_scenario_error(s, "linear_decay", error,
                                 "softmax attention has no decay; see --attention");
    return fill_heads(s, from->model, a, error);
}

bool
lh_setup_takes_window(const LhScenario *s, const LhModel *model, const LhAttention *a)
{
    return !a->linear && !lh_scenario_has(s, "mask") && !lh_scenario_has(s, "window_size") &&
           model->sliding_window < a->seq_length && lh_model_windowed(model) > 0 &&
           lh_model_windowed(model) == lh_model_count(model, LH_LAYER_SOFTMAX);
}

static bool
fill_mask(const LhScenario *s, const LhSources *from, const LhAttention *a, LhMaskRule *mask,
          GError **error)
{
    const LhDocuments *documents = documents_of(s, from);

    mask->causal = s->mask < 0 ? !from->model->bidirectional : s->mask == 0;
    mask->window = s->window_size;
    if (lh_setup_takes_window(s, from->model, a))
        mask->window = from->model->sliding_window;
    if (mask->window != 0 && !mask->causal)
        return lh_scenario_error(s, "window_size", error, "a sliding window needs a causal mask");
    if (documents == NULL)
        return true;
    if (!s->step && documents->packs_count > 1)
        return lh_scenario_error(s, "document_lengths", error,
                                 "%s has %u packs; an attention module takes one",
                                 s->document_lengths, documents->packs_count);
    mask->document_ends = documents->ends;
    mask->documents_count = documents->count;
    return true;
}

/* Whether an option's two numbers imply the number of ranks. */
static bool
is_shape_of_ranks(const LhOption *option)
{
    return option->type == LH_OPTION_GRID || option->type == LH_OPTION_SIZES;
}

bool
lh_setup_ranks(const LhScenario *s, uint64_t *ranks, GError **error)
{
    const LhOption *const *options = lh_schedule_options();

    *ranks = 0;
    for (guint i = 0; options[i] != NULL; i++) {
        LhOptionValue value;

        if (!lh_scenario_option(s, options[i], &value, error))
            return false;
        if (is_shape_of_ranks(options[i]) && value.first != 0)
            *ranks = (uint64_t)value.first * value.second;
    }
    if (__builtin_mul_overflow(*ranks, MAX(s->data_parallel_size, 1), ranks))
        *ranks = UINT64_MAX;
    return true;
}

/* Fills the options of schedules. */
static bool
fill_options(const LhScenario *s, LhProgramParams *p, GError **error)
{
    const LhOption *const *options = lh_schedule_options();

    for (guint i = 0; options[i] != NULL; i++) {
        LhOptionValue value;

        if (!lh_scenario_option(s, options[i], &value, error))
            return false;
        if (options[i]->type == LH_OPTION_SIZES && value.first != 0 &&
            (uint64_t)value.first * value.second != p->ranks)
            return lh_scenario_error(s, options[i]->name, error,
                                     "the product of the sizes is %" G_GUINT64_FORMAT
                                     ", and there are %u ranks",
                                     (uint64_t)value.first * value.second, p->ranks);
        lh_option_set(p, options[i], value);
    }
    return true;
}

/* Splits @ranks into data-parallel groups. */
static bool
fill_groups(const LhScenario *s, uint32_t ranks, LhProgramParams *p, GError **error)
{
    const uint64_t groups = s->step && s->context_parallel_size != 0
                                ? ranks / s->context_parallel_size
                                : MAX(s->data_parallel_size, 1);
    g_autofree char *near = NULL;
    uint64_t below = groups, above = groups;

    p->data_parallel_size = (uint32_t)groups;
    p->ranks = (uint32_t)(ranks / groups);
    if (ranks % groups == 0)
        return true;
    while (ranks % below != 0)
        below--;
    while (above < ranks && ranks % above != 0)
        above++;
    near = lh_near_text(below, above > ranks ? below : above);
    return lh_scenario_error(s, "data_parallel_size", error,
                             "%u ranks cannot be cut into %" G_GUINT64_FORMAT
                             " equal groups; nearest legal numbers: %s",
                             ranks, groups, near);
}

bool
lh_setup_params(const LhScenario *s, const LhSources *from, uint32_t ranks, LhProgramParams *params,
                GError **error)
{
    LhProgramParams p = { .gpus_per_node = from->gpus_per_node };

    if (!fill_groups(s, ranks, &p, error) ||
        !fill_attention(s, from, p.ranks, &p.attention, error) ||
        !fill_mask(s, from, &p.attention, &p.mask, error) || !fill_options(s, &p, error))
        return false;
    if (from->model->refusal != NULL && p.attention.seq_length > from->model->refused_above) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_INPUT, from->model->refusal);
        return false;
    }
    p.pass = s->pass < 0 ? LH_PASS_BOTH : (LhPass)(s->pass + 1);
    *params = p;
    return true;
}
