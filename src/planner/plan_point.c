/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/plan_point.h"

#include "base/error.h"
#include "planner/plan_shapes.h"
#include "remedy/remedy_menu.h"
#include "scenario/step/setup_step.h"
#include "step/legality.h"
#include "step/pipeline/pipeline.h"

/* ---- points ---- */

/* Whether an option is searched: options that arrange a schedule's ranks are. Flags and choices,
 * which decide what is computed or whose code is used, are fixed. */
static bool
is_searched(const LhScenario *s, const LhSchedule *schedule, const LhOption *option)
{
    return option != schedule->not_varied && option->type != LH_OPTION_FLAG &&
           option->type != LH_OPTION_CHOICE && !option->linear_only &&
           !lh_scenario_has(s, option->name);
}

static uint32_t
count_values(const LhOption *option, const LhProgramParams *p)
{
    LhOptionValue value;
    uint32_t count = 0;

    while (lh_option_value(option, p, count, &value))
        count++;
    return count;
}

uint32_t
lh_plan_arrange(const LhScenario *s, const LhSchedule *schedule, uint32_t variant,
                LhProgramParams *p)
{
    const LhProgramParams plain = *p;
    uint32_t variants = 1;

    for (uint32_t i = 0; schedule->options != NULL && schedule->options[i] != NULL; i++) {
        const LhOption *option = schedule->options[i];
        const uint32_t values = is_searched(s, schedule, option) ? count_values(option, &plain) : 0;
        LhOptionValue value;

        if (values == 0)
            continue;
        if (lh_option_value(option, &plain, variant / variants % values, &value))
            lh_option_set(p, option, value);
        variants *= values;
    }
    return variants;
}

/* ---- one point ---- */

void
lh_plan_case_policies(LhPlanCase *c, const LhPlanPoint *point)
{
    const LhStepParams *given = &c->from->params;
    LhStepParams *p = &c->step.params;

    p->chunks = point->chunks;
    p->pipeline_order = (LhPipelineOrder)point->order;
    p->recompute = given->recompute;
    p->loss = given->loss;
    p->loss_chunk_rows = given->loss_chunk_rows;
    p->mlp_tile_rows = given->mlp_tile_rows;
    p->offload_layers = given->offload_layers;
    lh_setup_step_policy(&c->step, (LhShard)point->shard, (LhCheckpoint)point->checkpoint);
    lh_remedies_apply(&point->remedies, &c->step);
}

void
lh_plan_case_floor(LhPlanCase *c)
{
    const LhRemedies fast = { .loss = lh_remedy_fast_loss(&c->setup) };

    lh_remedies_apply(&fast, &c->step);
}

void
lh_plan_case_of(LhPlanCase *c, const LhPlanSpace *space, guint index, const LhSetup *setup)
{
    const LhPlanPoint *point = lh_plan_point(space, index);

    c->setup = *setup;
    c->step = *setup->step;
    c->setup.step = &c->step;
    c->schedule = point->schedule;
    c->calls = space->calls;
    c->from = setup->step;
    lh_plan_case_policies(c, point);
    if (c->step.params.module.ranks > 1)
        lh_plan_arrange(space->scenario, point->schedule, point->variant, &c->step.params.module);
    lh_setup_step_pad(&c->setup, point->schedule, &c->step.model);
}

bool
lh_plan_case_least(LhPlanCase *c, bool types, guint loss)
{
    LhRemedies r = { 0 };
    LhRemedyMenu menu;
    bool recomputes = false;
    guint losses = 0;

    lh_remedy_menu(&c->setup, &menu);
    for (guint i = 0; i < menu.count; i++) {
        const LhRemedies *adds = &menu.switches[i].adds;

        recomputes = recomputes || adds->modules != 0 || adds->method != 0;
        losses += adds->loss != 0;
        if (adds->modules == 0 && adds->method == 0 && (types || !menu.switches[i].types) &&
            (adds->loss == 0 || losses == loss))
            lh_remedies_add(&r, adds);
    }
    if (recomputes)
        lh_setup_step_policy(&c->step, c->step.params.shard, LH_CHECKPOINT_LAYER);
    lh_remedies_apply(&r, &c->step);
    return loss <= losses;
}

bool
lh_plan_case_init(LhPlanCase *c, const LhPlanSpace *space, guint index, GError **error)
{
    const LhPlanShape *shape = lh_plan_shape(space, lh_plan_point(space, index));

    if (shape->setup == NULL) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_NO, shape->refusal);
        return false;
    }
    lh_plan_case_of(c, space, index, shape->setup);
    return true;
}

bool
lh_plan_case_check(const LhPlanCase *c, GError **error)
{
    LhStepParams p = c->step.params;

    p.model = &c->step.model;
    return lh_step_check(&p, error);
}

LhProgram *
lh_plan_case_program(const LhPlanCase *c, GError **error)
{
    return lh_setup_program(&c->setup, c->schedule, error);
}

/* Sets the options of the schedule's arrangement. */
static void
replace_options(LhScenario *s, const LhPlanCase *c)
{
    const LhProgramParams *p = &c->step.params.module;

    for (uint32_t i = 0; i < p->options_count; i++) {
        const LhOptionSetting *setting = &p->options[i];
        g_autofree char *value = lh_option_value_text(setting->option, setting->value);

        lh_scenario_replace(s, setting->option->name, value[0] != '\0' ? value : NULL);
    }
}

LhScenario *
lh_plan_point_scenario(const LhPlanSpace *space, guint index)
{
    const LhPlanPoint *point = lh_plan_point(space, index);
    const LhPlanShape *shape = lh_plan_shape(space, point);
    LhScenario *s;
    LhPlanCase c;

    if (!lh_plan_case_init(&c, space, index, NULL))
        return NULL;
    s = lh_scenario_copy(shape->scenario);
    lh_scenario_replace(s, "schedule", point->schedule->name);
    lh_scenario_replace(s, "checkpoint", lh_checkpoint_names[point->checkpoint]);
    lh_scenario_replace(s, "shard", lh_shard_names[point->shard]);
    lh_remedies_replace(&point->remedies, s);
    if (shape->sizes.pipeline > 1)
        lh_scenario_replace(s, "pipeline_schedule", lh_pipeline_order_names[point->order]);
    if (point->chunks > 1) {
        const uint64_t all = lh_plan_places(
            lh_plan_layers(space), shape->scenario->account_for_embedding_in_pipeline_split,
            shape->scenario->account_for_loss_in_pipeline_split);

        lh_plan_replace_count(s, "num_layers_per_virtual_pipeline_stage",
                              all / shape->sizes.pipeline / point->chunks);
    }
    if (shape->sizes.context > 1)
        replace_options(s, &c);
    return s;
}

char *
lh_plan_point_schedule(const LhPlanSpace *space, guint index)
{
    const LhPlanPoint *point = lh_plan_point(space, index);
    const LhPlanShape *shape = lh_plan_shape(space, point);
    g_autoptr(GString) text = g_string_new(point->schedule->name);
    LhPlanCase c;

    if (shape->sizes.context == 1)
        return g_strdup("none");
    if (!lh_plan_case_init(&c, space, index, NULL))
        return g_string_free(g_steal_pointer(&text), FALSE);
    for (uint32_t i = 0; point->schedule->options != NULL && point->schedule->options[i] != NULL;
         i++) {
        const LhOption *option = point->schedule->options[i];
        g_autofree char *said = NULL;

        if (!lh_option_is_set(&c.step.params.module, option))
            continue;
        said = lh_option_text(option, lh_option_get(&c.step.params.module, option));
        g_string_append_printf(text, ", %s", said);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char *
lh_plan_point_pipeline(const LhPlanSpace *space, guint index)
{
    const LhPlanPoint *point = lh_plan_point(space, index);
    const uint32_t stages = lh_plan_shape(space, point)->sizes.pipeline;

    if (point->chunks > 1)
        return g_strdup_printf("%u, %u chunks", stages, point->chunks);
    if (stages > 1 && point->order != LH_PIPELINE_1F1B)
        return g_strdup_printf("%u, %s", stages, lh_pipeline_order_names[point->order]);
    return g_strdup_printf("%u", stages);
}

char *
lh_plan_point_text(const LhPlanSpace *space, guint index)
{
    const LhPlanPoint *point = lh_plan_point(space, index);
    const LhPlanShape *shape = lh_plan_shape(space, point);
    g_autofree char *schedule = lh_plan_point_schedule(space, index);
    g_autofree char *pipeline = lh_plan_point_pipeline(space, index);
    g_autofree char *remedies = lh_remedies_text(&point->remedies);

    return g_strdup_printf("tp %u, cp %u, dp %u, pp %s, micro-batches %u x %u, %s, %s, %s%s%s",
                           shape->sizes.tensor, shape->sizes.context, shape->sizes.data, pipeline,
                           shape->micro_batches, shape->micro_batch_size, schedule,
                           lh_checkpoint_names[lh_plan_point_checkpoint(point)],
                           lh_shard_names[point->shard], remedies[0] != '\0' ? ", " : "", remedies);
}
