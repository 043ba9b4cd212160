/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/plan_shapes.h"

#include "scenario/step/setup_step.h"

#include <inttypes.h>
#include <string.h>

void
lh_plan_shape_free(gpointer data)
{
    LhPlanShape *shape = data;

    lh_setup_free(shape->setup);
    lh_scenario_free(shape->scenario);
    g_free(shape->refusal);
    g_free(shape);
}

void
lh_plan_replace_count(LhScenario *s, const char *field, uint64_t count)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, count);

    lh_scenario_replace(s, field, text);
}

/* The tensor-parallel size given in the scenario; 0: none. "all" means all GPUs of a stage. */
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

uint64_t
lh_plan_layers(const LhPlanSpace *space)
{
    return space->setup->step->model.num_layers;
}

uint64_t
lh_plan_places(uint64_t layers, bool embedding, bool loss)
{
    return layers + (embedding ? 1u : 0) + (loss ? 1u : 0);
}

/* Decides whether embedding and loss count as layers: as given; else the first that makes the
 * stages equal: neither, both, or one of them. False if none does. */
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
        return lh_plan_places(layers, *embedding, *loss) % stages == 0;
    for (guint i = 0; i < G_N_ELEMENTS(choices); i++) {
        *embedding = choices[i][0];
        *loss = choices[i][1];
        if (lh_plan_places(layers, *embedding, *loss) % stages == 0)
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
        return; /* the step will be rejected */
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
    lh_plan_replace_count(shape->scenario, "tensor_model_parallel_size", sizes.tensor);
    lh_plan_replace_count(shape->scenario, "context_parallel_size", sizes.context);
    lh_plan_replace_count(shape->scenario, "data_parallel_size", sizes.data);
    if (sizes.pipeline > 1) {
        lh_plan_replace_count(shape->scenario, "pipeline_model_parallel_size", sizes.pipeline);
        count_ends(shape->scenario, lh_plan_layers(space), sizes.pipeline);
        space->pipelines = true;
    }
    lh_plan_replace_count(shape->scenario, "micro_batch_size", micro_batch_size);
    lh_plan_replace_count(shape->scenario, "num_micro_batches", shape->micro_batches);
    g_ptr_array_add(space->shapes, shape);
}

/* Adds every micro-batch size that divides a data-parallel rank's batch. */
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

/* Adds every division of a stage's @gpus GPUs. */
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

void
lh_plan_add_shapes(LhPlanSpace *space)
{
    const LhScenario *s = space->scenario;
    const uint64_t given = s->pipeline_model_parallel_size;
    bool embedding, loss;

    for (uint32_t stages = 1; stages <= MIN(space->gpus, lh_plan_layers(space)); stages++) {
        if (space->gpus % stages == 0 && allows(given, stages) &&
            (given != 0 || choose_ends(s, lh_plan_layers(space), stages, &embedding, &loss)))
            add_stages(space, stages, space->gpus / stages);
    }
}

void
lh_plan_set_up_shape(void *data, guint index)
{
    const LhPlanSpace *space = data;
    LhPlanShape *shape = g_ptr_array_index(space->shapes, index);
    g_autoptr(GError) error = NULL;

    shape->setup = lh_setup_new(shape->scenario, &error);
    if (shape->setup == NULL)
        shape->refusal = g_strdup(error->message);
}
