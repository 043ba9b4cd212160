/*
 * Points are written down as a few numbers: a space may have a hundred thousand. What a number
 * stands for is worked out again where a point becomes a program.
 */
#include "planner/design_space.h"

#include "base/error.h"
#include "base/threads.h"
#include "framework_config/common/config_words.h"
#include "scenario/setup_step.h"
#include "step/legality.h"
#include "step/modules.h"
#include "step/pipeline.h"

#include <inttypes.h>
#include <string.h>

/* ---- shapes ---- */

static void
shape_free(gpointer data)
{
    LhPlanShape *shape = data;

    lh_setup_free(shape->setup);
    lh_scenario_free(shape->scenario);
    g_free(shape->refusal);
    g_free(shape);
}

static void
replace_count(LhScenario *s, const char *field, uint64_t count)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, count);

    lh_scenario_replace(s, field, text);
}

/* What was given of a size; 0: nothing. "all" of the tensor-parallel ones are those of a stage. */
static uint64_t
given_tensor(const LhPlanSpace *space, uint32_t gpus)
{
    const char *text = space->scenario->tensor_model_parallel_size;

    if (text == NULL)
        return 0;
    return strcmp(text, "all") == 0 ? gpus : g_ascii_strtoull(text, NULL, 10);
}

static bool
allows(uint64_t given, uint64_t size)
{
    return given == 0 || given == size;
}

static uint64_t
layers_of(const LhPlanSpace *space)
{
    return space->setup->step->model.num_layers;
}

/* Layers with the ends that count. */
static uint64_t
places(uint64_t layers, bool embedding, bool loss)
{
    return layers + (embedding ? 1u : 0) + (loss ? 1u : 0);
}

/* Which ends count as layers: as given; else neither, if stages have equally many layers so, or
 * both, or one of them. False if nothing makes these stages equal. */
static bool
choose_ends(const LhScenario *s, uint64_t layers, uint32_t stages, bool *embedding, bool *loss)
{
    static const bool choices[][2] = {
        { false, false }, { true, true }, { false, true }, { true, false }
    };

    *embedding = s->account_for_embedding_in_pipeline_split;
    *loss = s->account_for_loss_in_pipeline_split;
    if (lh_scenario_has(s, "account_for_embedding_in_pipeline_split") ||
        lh_scenario_has(s, "account_for_loss_in_pipeline_split"))
        return places(layers, *embedding, *loss) % stages == 0;
    for (guint i = 0; i < G_N_ELEMENTS(choices); i++) {
        *embedding = choices[i][0];
        *loss = choices[i][1];
        if (places(layers, *embedding, *loss) % stages == 0)
            return true;
    }
    *embedding = *loss = false;
    return false;
}

static void
count_ends(LhScenario *s, uint64_t layers, uint32_t stages)
{
    bool embedding, loss;

    if (!choose_ends(s, layers, stages, &embedding, &loss))
        return; /* the step is refused */
    if (embedding)
        lh_scenario_replace(s, "account_for_embedding_in_pipeline_split", NULL);
    if (loss)
        lh_scenario_replace(s, "account_for_loss_in_pipeline_split", NULL);
}

static void
add_shape(LhPlanSpace *space, LhStepSizes sizes, uint32_t micro_batch_size)
{
    const uint64_t batch = space->sequences / sizes.data;
    LhPlanShape *shape = g_new0(LhPlanShape, 1);

    *shape = (LhPlanShape){ .sizes = sizes,
                            .micro_batch_size = micro_batch_size,
                            .micro_batches = (uint32_t)(batch / micro_batch_size),
                            .scenario = lh_scenario_copy(space->scenario) };
    replace_count(shape->scenario, "tensor_model_parallel_size", sizes.tensor);
    replace_count(shape->scenario, "context_parallel_size", sizes.context);
    replace_count(shape->scenario, "data_parallel_size", sizes.data);
    if (sizes.pipeline > 1) {
        replace_count(shape->scenario, "pipeline_model_parallel_size", sizes.pipeline);
        count_ends(shape->scenario, layers_of(space), sizes.pipeline);
        space->pipelines = true;
    }
    replace_count(shape->scenario, "micro_batch_size", micro_batch_size);
    replace_count(shape->scenario, "num_micro_batches", shape->micro_batches);
    g_ptr_array_add(space->shapes, shape);
}

/* Every way to cut what a data-parallel rank has of the batch into micro-batches. */
static void
add_micro_batches(LhPlanSpace *space, LhStepSizes sizes)
{
    const LhScenario *s = space->scenario;
    const uint64_t batch = space->sequences / sizes.data;

    for (uint64_t size = 1; size <= MIN(batch, UINT32_MAX); size++) {
        if (batch % size == 0 && batch / size <= UINT16_MAX && allows(s->micro_batch_size, size) &&
            allows(s->num_micro_batches, batch / size) &&
            (s->pipeline_model_parallel_size > 0 || batch / size >= sizes.pipeline))
            add_shape(space, sizes, (uint32_t)size);
    }
}

/* Every way to cut the @gpus GPUs of a stage. */
static void
add_stages(LhPlanSpace *space, uint32_t stages, uint32_t gpus)
{
    const LhScenario *s = space->scenario;
    const uint64_t tensor = given_tensor(space, gpus);
    const uint32_t node = (uint32_t)space->setup->topology->gpus_per_node;

    for (uint32_t t = 1; t <= gpus; t++) {
        if (gpus % t != 0 || !allows(tensor, t) || (tensor == 0 && t > node))
            continue;
        for (uint32_t c = 1; c <= gpus / t; c++) {
            const LhStepSizes sizes = {
                .tensor = t, .context = c, .data = gpus / t / c, .pipeline = stages
            };

            if (gpus / t % c == 0 && space->sequences % sizes.data == 0 &&
                allows(s->context_parallel_size, c) && allows(s->data_parallel_size, sizes.data))
                add_micro_batches(space, sizes);
        }
    }
}

static void
add_shapes(LhPlanSpace *space)
{
    const LhScenario *s = space->scenario;
    const uint64_t given = s->pipeline_model_parallel_size;
    bool embedding, loss;

    for (uint32_t stages = 1; stages <= MIN(space->gpus, layers_of(space)); stages++) {
        if (space->gpus % stages == 0 && allows(given, stages) &&
            (given != 0 || choose_ends(s, layers_of(space), stages, &embedding, &loss)))
            add_stages(space, stages, space->gpus / stages);
    }
}

static void
set_up_shape(void *data, guint index)
{
    const LhPlanSpace *space = data;
    LhPlanShape *shape = g_ptr_array_index(space->shapes, index);
    g_autoptr(GError) error = NULL;

    shape->setup = lh_setup_new(shape->scenario, &error);
    if (shape->setup == NULL)
        shape->refusal = g_strdup(error->message);
}

/* ---- points ---- */

/* Options that say how a schedule arranges its ranks are searched; flags and choices say what is
 * computed, or whose code it is, and stay as they are. */
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

/* The number @variant is written with one digit for each option that is searched. Sets their values
 * in @p and returns how many variants there are. */
static uint32_t
arrange(const LhScenario *s, const LhSchedule *schedule, uint32_t variant, LhProgramParams *p)
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

/* Whether the system whose configuration was given has all this. */
static bool
can_be_said(const LhPlanSpace *space, const LhPlanPoint *point)
{
    const LhStepSizes *sizes = &lh_plan_shape(space, point)->sizes;
    const LhConfigWay way = { .tensor = sizes->tensor,
                              .context = sizes->context,
                              .data = sizes->data,
                              .pipeline = sizes->pipeline,
                              .shard = point->shard,
                              .checkpoint = point->checkpoint,
                              .order = point->order,
                              .chunks = point->chunks };

    return space->scenario->system == NULL || lh_config_allows(space->scenario->system, &way);
}

static void
add_policies(LhPlanSpace *space, LhPlanPoint point, bool sharded)
{
    const LhScenario *s = space->scenario;

    for (int checkpoint = 0; lh_checkpoint_names[checkpoint] != NULL; checkpoint++) {
        for (int shard = 0; lh_shard_names[shard] != NULL; shard++) {
            point.checkpoint = (uint8_t)checkpoint;
            point.shard = (uint8_t)shard;
            if ((s->checkpoint < 0 || s->checkpoint == checkpoint) &&
                (s->shard >= 0 ? s->shard == shard : sharded || shard == LH_SHARD_DDP) &&
                can_be_said(space, &point))
                g_array_append_val(space->points, point);
        }
    }
}

/* Every number of chunks of a stage's layers, and every order that has it. A number of chunks that
 * is not given is one that the micro-batches suit. */
static void
add_orders(LhPlanSpace *space, LhPlanPoint point, bool sharded)
{
    const LhScenario *s = space->scenario;
    const LhPlanShape *shape = lh_plan_shape(space, &point);
    const LhScenario *own = shape->scenario;
    const uint64_t all = places(layers_of(space), own->account_for_embedding_in_pipeline_split,
                                own->account_for_loss_in_pipeline_split);
    const uint64_t layers = all / shape->sizes.pipeline; /* of a stage */
    const uint64_t given = s->num_layers_per_virtual_pipeline_stage;

    point.chunks = 1;
    for (int order = 0; given == 0 && order < LH_PIPELINE_ORDERS; order++) {
        point.order = (uint8_t)order;
        if (s->pipeline_schedule < 0 || s->pipeline_schedule == order)
            add_policies(space, point, sharded);
    }
    point.order = LH_PIPELINE_1F1B;
    for (uint64_t chunks = given > 0 ? 1 : 2; chunks <= MIN(layers, UINT16_MAX); chunks++) {
        const bool suits = shape->micro_batches % shape->sizes.pipeline == 0 &&
                           s->pipeline_schedule != LH_PIPELINE_GPIPE &&
                           (all == layers_of(space) || layers / chunks > 1);

        point.chunks = (uint16_t)chunks;
        if (layers % chunks == 0 && (given > 0 ? layers / chunks == given : suits))
            add_policies(space, point, sharded);
    }
}

/* Without context parallelism nothing is spread, and any schedule stands for all: the first that
 * is not refused. */
static guint
choose_alone(const LhSetup *setup)
{
    for (guint i = 0; i < setup->schedules->len; i++) {
        LhModel model;
        const LhStepParams p =
            lh_setup_step_params(setup, g_ptr_array_index(setup->schedules, i), &model);
        LhStepAttention attention;

        if (lh_step_attention(&p, &attention, NULL)) {
            lh_step_attention_clear(&attention);
            return i;
        }
    }
    return 0;
}

static void
add_shape_points(LhPlanSpace *space, uint32_t index)
{
    const LhPlanShape *shape = g_ptr_array_index(space->shapes, index);
    const LhSetup *setup = shape->setup != NULL ? shape->setup : space->setup;
    const bool alone = shape->sizes.context == 1;
    const guint first = alone && shape->setup != NULL ? choose_alone(setup) : 0;
    const guint end = alone ? first + 1 : setup->schedules->len;

    for (guint i = first; i < end; i++) {
        LhPlanPoint point = { .shape = index,
                              .schedule = g_ptr_array_index(setup->schedules, i),
                              .chunks = 1 };
        const bool sharded = shape->sizes.context * shape->sizes.data > 1;
        uint32_t variants = 1;

        if (shape->setup != NULL && shape->sizes.context > 1) {
            LhProgramParams p = shape->setup->step->params.module;

            variants = arrange(space->scenario, point.schedule, 0, &p);
        }
        for (point.variant = 0; point.variant < variants; point.variant++) {
            if (shape->sizes.pipeline > 1)
                add_orders(space, point, sharded);
            else
                add_policies(space, point, sharded);
        }
    }
}

/* ---- the space ---- */

/* The scenario on @cluster, and a setup of it that is as little parallel as it may be. */
static bool
take_scenario(LhPlanSpace *space, const LhScenario *scenario, const char *cluster, GError **error)
{
    space->scenario = lh_scenario_copy(scenario);
    space->scenario->step = true;
    lh_scenario_replace(space->scenario, "step", NULL);
    if (cluster != NULL)
        lh_scenario_replace(space->scenario, "cluster", cluster);
    space->setup = lh_setup_new(space->scenario, error);
    if (space->setup == NULL)
        return false;
    space->gpus = space->setup->network.ranks;
    space->cluster =
        g_strdup_printf("%s:%u", space->setup->topology->name, space->setup->network.nodes);
    return true;
}

/* The files that any of the points depends on are those of the space. */
static void
take_input(GPtrArray *inputs, const LhInput *input)
{
    LhInput *copy;

    for (guint i = 0; i < inputs->len; i++) {
        if (strcmp(((const LhInput *)g_ptr_array_index(inputs, i))->path, input->path) == 0)
            return;
    }
    copy = g_new0(LhInput, 1);
    copy->of = input->of;
    copy->path = g_strdup(input->path);
    copy->sha256 = g_strdup(input->sha256);
    g_ptr_array_add(inputs, copy);
}

/* Which frameworks there are, by whether there is tensor parallelism. */
static void
name_frameworks(LhPlanSpace *space)
{
    const char *plain = NULL, *tensor = NULL;

    for (guint i = 0; i < space->shapes->len; i++) {
        const LhPlanShape *shape = g_ptr_array_index(space->shapes, i);
        const GPtrArray *inputs = shape->setup != NULL ? shape->setup->inputs : NULL;

        if (inputs == NULL)
            continue;
        if (shape->sizes.tensor > 1)
            tensor = shape->setup->framework->name;
        else
            plain = shape->setup->framework->name;
        for (guint k = 0; k < inputs->len; k++)
            take_input(space->setup->inputs, g_ptr_array_index(inputs, k));
    }
    plain = plain != NULL ? plain : tensor != NULL ? tensor : space->setup->framework->name;
    space->frameworks = tensor == NULL || strcmp(plain, tensor) == 0
                            ? g_strdup(plain)
                            : g_strdup_printf("%s (with tensor parallelism %s)", plain, tensor);
}

LhPlanSpace *
lh_plan_space_new(const LhScenario *scenario, const char *cluster, uint64_t sequences,
                  guint threads, GError **error)
{
    g_autoptr(LhPlanSpace) space = g_new0(LhPlanSpace, 1);

    space->shapes = g_ptr_array_new_with_free_func(shape_free);
    space->points = g_array_new(FALSE, FALSE, sizeof(LhPlanPoint));
    space->sequences = sequences;
    if (!take_scenario(space, scenario, cluster, error) ||
        !lh_setup_step_check_frameworks(space->scenario, error))
        return NULL;
    add_shapes(space);
    if (space->shapes->len == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "no way to cut %u GPU%s and %" PRIu64
                    " sequence%s has the parallel sizes and micro-batches that were given",
                    space->gpus, space->gpus == 1 ? "" : "s", sequences, sequences == 1 ? "" : "s");
        return NULL;
    }
    lh_on_threads_each("set up", threads, space->shapes->len, set_up_shape, space);
    for (uint32_t i = 0; i < space->shapes->len; i++)
        add_shape_points(space, i);
    name_frameworks(space);
    space->calls = lh_bound_cache_new(space->setup);
    return g_steal_pointer(&space);
}

void
lh_plan_space_free(LhPlanSpace *space)
{
    if (space == NULL)
        return;
    g_clear_pointer(&space->points, g_array_unref);
    g_clear_pointer(&space->shapes, g_ptr_array_unref);
    lh_bound_cache_free(space->calls);
    lh_setup_free(space->setup);
    lh_scenario_free(space->scenario);
    g_free(space->cluster);
    g_free(space->frameworks);
    g_free(space);
}

/* ---- one point ---- */

void
lh_plan_case_policies(LhPlanCase *c, const LhPlanPoint *point)
{
    c->step.params.chunks = point->chunks;
    c->step.params.pipeline_order = (LhPipelineOrder)point->order;
    lh_setup_step_policy(&c->step, (LhShard)point->shard, (LhCheckpoint)point->checkpoint);
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
    lh_plan_case_policies(c, point);
    if (c->step.params.module.ranks > 1)
        arrange(space->scenario, point->schedule, point->variant, &c->step.params.module);
    lh_setup_step_pad(&c->setup, point->schedule, &c->step.model);
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

/* The arrangement of the schedule, option by option. */
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
    if (shape->sizes.pipeline > 1)
        lh_scenario_replace(s, "pipeline_schedule", lh_pipeline_order_names[point->order]);
    if (point->chunks > 1) {
        const uint64_t all =
            places(layers_of(space), shape->scenario->account_for_embedding_in_pipeline_split,
                   shape->scenario->account_for_loss_in_pipeline_split);

        replace_count(s, "num_layers_per_virtual_pipeline_stage",
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

    return g_strdup_printf("tp %u, cp %u, dp %u, pp %s, micro-batches %u x %u, %s, %s, %s",
                           shape->sizes.tensor, shape->sizes.context, shape->sizes.data, pipeline,
                           shape->micro_batches, shape->micro_batch_size, schedule,
                           lh_checkpoint_names[point->checkpoint], lh_shard_names[point->shard]);
}
