/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/baseline_config.h"

#include "compare/step_plan.h"
#include "framework_config/common/config_words.h"
#include "framework_config/configuration_scenario.h"
#include "planner/plan_point.h"

#include <inttypes.h>
#include <string.h>

/* ---- the configuration's own way of training ---- */

/* The space's scenario with the configuration's parallelism and policies. NULL with @error if it
 * has none. */
static LhScenario *
scenario_with_way(const LhConfig *config, const LhPlanSpace *space, GError **error)
{
    static const char *const searched[] = {
        "tensor_model_parallel_size",
        "context_parallel_size",
        "data_parallel_size",
        "pipeline_model_parallel_size",
        "num_layers_per_virtual_pipeline_stage",
        "pipeline_schedule",
        "micro_batch_size",
        "num_micro_batches",
        "checkpoint",
        "recompute_modules",
        "recompute_method",
        "recompute_num_layers",
        "shard",
        "schedule",
    };
    g_autoptr(LhScenario) s = lh_scenario_copy(space->scenario);
    const uint64_t stages = s->pipeline_model_parallel_size;

    for (guint i = 0; i < G_N_ELEMENTS(searched); i++)
        lh_scenario_forget(s, searched[i]);
    s->pipeline_model_parallel_size = stages == 1 ? stages : 0;
    s->global_batch_size = space->sequences;
    s->system = NULL;
    return lh_config_check_way(config, LH_CONFIG_WAY, s, error) &&
                   lh_config_apply(config, LH_CONFIG_WAY | LH_CONFIG_SCHEDULE, s, error)
               ? g_steal_pointer(&s)
               : NULL;
}

/* Describes the way of training: "tp 2, cp 8, dp 1, pp 4, te-p2p, zero1, recomputed: layer"; NULL
 * if the sizes are invalid. Caller frees. */
static char *
text_of(const LhScenario *s, uint32_t ranks)
{
    LhStepSizes sizes;
    g_autoptr(GString) text = g_string_new(NULL);

    if (!lh_setup_step_sizes(s, ranks, &sizes, NULL))
        return NULL;
    g_string_append_printf(text, "tp %u, cp %u, dp %u", sizes.tensor, sizes.context, sizes.data);
    if (sizes.pipeline > 1)
        g_string_append_printf(text, ", pp %u", sizes.pipeline);
    if (sizes.context > 1 && s->schedule != NULL)
        g_string_append_printf(text, ", %s", (const char *)g_ptr_array_index(s->schedule, 0));
    if (s->shard >= 0)
        g_string_append_printf(text, ", %s", lh_shard_names[s->shard]);
    if (s->checkpoint >= 0)
        g_string_append_printf(text, ", recomputed: %s",
                               s->recompute_modules != NULL ? s->recompute_modules
                                                            : lh_checkpoint_names[s->checkpoint]);
    if (s->recompute_method >= 0)
        g_string_append_printf(text, ", %s %" PRIu64,
                               lh_recompute_method_names[s->recompute_method],
                               s->recompute_num_layers);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

LhBaselineConfig *
lh_baseline_config_new(const LhConfig *config, const LhPlanSpace *space)
{
    LhBaselineConfig *start = g_new0(LhBaselineConfig, 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) s = scenario_with_way(config, space, &error);
    LhStepAnswer answer;

    start->way = s != NULL ? text_of(s, space->gpus) : NULL;
    if (s == NULL || !lh_step_answer(s, &answer, &error)) {
        start->refusal = g_strdup(error->message);
        return start;
    }
    start->iteration_s = answer.iteration_s;
    start->peak_bytes = answer.peak_bytes;
    start->fits = answer.fits;
    return start;
}

void
lh_baseline_config_free(LhBaselineConfig *start)
{
    if (start == NULL)
        return;
    g_free(start->way);
    g_free(start->refusal);
    g_free(start);
}

/* ---- as settings of the framework ---- */

/* Sets the group sizes of te-a2a-p2p. */
static void
take_groups(const LhPlanCase *c, LhConfigWay *way)
{
    const LhOption *const *options = c->schedule->options;

    for (uint32_t i = 0; options != NULL && options[i] != NULL; i++) {
        if (options[i]->type == LH_OPTION_SIZES) {
            const LhOptionValue value = lh_option_get(&c->step.params.module, options[i]);

            way->heads = value.first;
            way->others = value.second;
        }
    }
}

GPtrArray *
lh_plan_words(const LhConfig *config, const LhPlanSpace *space, guint index)
{
    const LhPlanPoint *point = lh_plan_point(space, index);
    const LhPlanShape *shape = lh_plan_shape(space, point);
    const LhScenario *s = shape->scenario;
    const uint64_t layers = space->setup->model->num_layers +
                            (s->account_for_embedding_in_pipeline_split ? 1 : 0) +
                            (s->account_for_loss_in_pipeline_split ? 1 : 0);
    LhConfigWay way = {
        .tensor = shape->sizes.tensor,
        .context = shape->sizes.context,
        .data = shape->sizes.data,
        .pipeline = shape->sizes.pipeline,
        .shard = point->shard,
        .checkpoint = (int)lh_plan_point_checkpoint(point),
        .recompute = space->setup->step->params.recompute,
        .order = point->order,
        .chunks = point->chunks,
        .layers_of_chunk = (uint32_t)(layers / shape->sizes.pipeline / point->chunks),
        .embedding_counts = s->account_for_embedding_in_pipeline_split,
        .loss_counts = s->account_for_loss_in_pipeline_split,
        .micro_batch_size = shape->micro_batch_size,
        .micro_batches = shape->micro_batches,
        .seq_length = space->setup->params.attention.seq_length,
        .schedule = point->schedule->name,
    };
    LhRemedies on = point->remedies;
    GPtrArray *words;
    LhPlanCase c;

    if (way.context > 1 && lh_plan_case_init(&c, space, index, NULL))
        take_groups(&c, &way);
    if (on.modules != 0)
        way.recompute = (LhRecompute){ .modules = on.modules };
    if (on.method != 0)
        way.recompute =
            (LhRecompute){ .layers = on.layers, .method = (LhRecomputeMethod)(on.method - 1) };
    words = lh_config_words(config, &way);
    on.modules = on.method = 0; /* these are settings of the way */
    on.layers = 0;
    if (lh_remedies_any(&on) && shape->setup != NULL) {
        g_autofree char *more = lh_remedies_words(&on, shape->setup->framework);
        g_autofree char *remark = g_strdup_printf("to fit in memory, also: %s", more);

        lh_config_remark(config, words, remark);
    }
    return words;
}
