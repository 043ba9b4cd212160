/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A point is stored as a few numbers: a space may have a hundred thousand. Everything else is
 * derived when the point becomes a program.
 */
#include "planner/design_space.h"

#include "base/error.h"
#include "base/threads.h"
#include "framework_config/common/config_words.h"
#include "planner/plan_point.h"
#include "planner/plan_shapes.h"
#include "scenario/step/setup_recomputation.h"
#include "scenario/step/setup_step.h"
#include "step/legality.h"
#include "step/modules.h"
#include "step/pipeline/pipeline.h"

#include <inttypes.h>
#include <string.h>

/* ---- points ---- */

/* Whether the framework of the configuration supports the point. */
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
                              .recompute = space->setup->step->params.recompute,
                              .order = point->order,
                              .chunks = point->chunks };

    return space->scenario->system == NULL || lh_config_allows(space->scenario->system, &way);
}

/* Whether the named framework has the policy: it is its default, or among its remedies, if these
 * name policies. Without a name all policies are searched. */
static bool
has_policy(const LhPlanSpace *space, int checkpoint)
{
    const LhFramework *f = space->setup->framework;

    return space->scenario->framework == NULL || space->scenario->checkpoint >= 0 ||
           space->scenario->recompute_modules != NULL || space->scenario->recompute_method >= 0 ||
           checkpoint == f->states_checkpoint ||
           lh_framework_remedy(f->remedies, LH_REMEDY_CHECKPOINT, NULL) == NULL ||
           lh_framework_remedy(f->remedies, LH_REMEDY_CHECKPOINT,
                               lh_checkpoint_names[checkpoint]) != NULL;
}

static void
add_policies(LhPlanSpace *space, LhPlanPoint point, bool sharded)
{
    const LhScenario *s = space->scenario;

    for (int checkpoint = 0; lh_checkpoint_names[checkpoint] != NULL; checkpoint++) {
        for (int shard = 0; lh_shard_names[shard] != NULL; shard++) {
            point.checkpoint = (uint8_t)checkpoint;
            point.shard = (uint8_t)shard;
            if (lh_setup_recomputation_allows(s, (LhCheckpoint)checkpoint) &&
                has_policy(space, checkpoint) &&
                (s->shard >= 0 ? s->shard == shard : sharded || shard == LH_SHARD_DDP) &&
                can_be_said(space, &point))
                g_array_append_val(space->points, point);
        }
    }
}

/* Adds every number of chunks that divides a stage's layers, and every order that supports it. A
 * number that is not given must suit the micro-batches. */
static void
add_orders(LhPlanSpace *space, LhPlanPoint point, bool sharded)
{
    const LhScenario *s = space->scenario;
    const LhPlanShape *shape = lh_plan_shape(space, &point);
    const LhScenario *own = shape->scenario;
    const uint64_t all =
        lh_plan_places(lh_plan_layers(space), own->account_for_embedding_in_pipeline_split,
                       own->account_for_loss_in_pipeline_split);
    const uint64_t layers = all / shape->sizes.pipeline; /* per stage */
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
                           (all == lh_plan_layers(space) || layers / chunks > 1);

        point.chunks = (uint16_t)chunks;
        if (layers % chunks == 0 && (given > 0 ? layers / chunks == given : suits))
            add_policies(space, point, sharded);
    }
}

/* The schedule without context parallelism, where the sequence is not distributed: the first that
 * is not rejected represents all. */
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

            variants = lh_plan_arrange(space->scenario, point.schedule, 0, &p);
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

/* Points of the space have different micro-batches, so that only one pack suits all of them. */
static bool
check_documents(const LhScenario *s, GError **error)
{
    g_autoptr(LhDocuments) documents = NULL;

    if (s->document_distribution != NULL)
        return lh_scenario_error(s, "document_distribution", error,
                                 "the configurations of a plan have different numbers of "
                                 "micro-batches: give the documents of all by --document-lengths");
    documents = lh_setup_load_documents(s, error);
    if (documents == NULL)
        return s->document_lengths == NULL;
    return documents->packs_count == 1 ||
           lh_scenario_error(s, "document_lengths", error,
                             "found %u packs in %s; allowed: one, since the configurations of a "
                             "plan have different numbers of micro-batches",
                             documents->packs_count, s->document_lengths);
}

/* Sets the scenario on @cluster, and a setup of it with the least parallelism allowed. */
static bool
take_scenario(LhPlanSpace *space, const LhScenario *scenario, const char *cluster, GError **error)
{
    static const char *const offloads[] = { "optimizer_cpu_offload", "optimizer_offload_fraction",
                                            "overlap_cpu_optimizer_d2h_h2d", "offload_param" };

    for (gsize i = 0; i < G_N_ELEMENTS(offloads); i++) {
        if (lh_scenario_has(scenario, offloads[i]))
            return lh_scenario_error(scenario, offloads[i], error,
                                     "the search does not estimate offload: give it to sim or "
                                     "compare with one of the ways that it finds");
    }
    space->scenario = lh_scenario_copy(scenario);
    if (scenario->pass == LH_PASS_FWD - 1)
        return lh_scenario_error(scenario, "pass", error,
                                 "plan searches training steps, which have both passes; compare, "
                                 "sim and sweep take --step --pass fwd");
    space->scenario->step = true;
    lh_scenario_replace(space->scenario, "step", NULL);
    if (cluster != NULL)
        lh_scenario_replace(space->scenario, "cluster", cluster);
    if (!check_documents(space->scenario, error))
        return false;
    space->setup = lh_setup_new(space->scenario, error);
    if (space->setup == NULL)
        return false;
    space->gpus = space->setup->network.ranks;
    space->cluster =
        g_strdup_printf("%s:%u", space->setup->topology->name, space->setup->network.nodes);
    return true;
}

/* Adds an input file of a point to the space's, once. */
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

/* Names the frameworks, without and with tensor parallelism. */
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

    space->shapes = g_ptr_array_new_with_free_func(lh_plan_shape_free);
    space->points = g_array_new(FALSE, FALSE, sizeof(LhPlanPoint));
    space->sequences = sequences;
    if (!take_scenario(space, scenario, cluster, error) ||
        !lh_setup_step_check_frameworks(space->scenario, error))
        return NULL;
    lh_plan_add_shapes(space);
    if (space->shapes->len == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "no way to divide %u GPU%s and %" PRIu64
                    " sequence%s has the given parallel sizes and micro-batches",
                    space->gpus, space->gpus == 1 ? "" : "s", sequences, sequences == 1 ? "" : "s");
        return NULL;
    }
    lh_on_threads_each("set up", threads, space->shapes->len, lh_plan_set_up_shape, space);
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
