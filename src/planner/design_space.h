/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The design space: ways of training a model on one cluster. Its dimensions are tensor-, context-,
 * data- and pipeline-parallel sizes, the attention schedule with its rank arrangements,
 * recomputation, sharding, micro-batch size, pipeline order and chunks per stage. The number of
 * sequences per step is constant. Values given in the scenario are fixed.
 *
 * Only pipelines whose stages have equal numbers of layers are considered (embedding and loss may
 * count as layers), with at least as many micro-batches as stages.
 */
#pragma once

#include "planner/bound_cache.h"
#include "remedy/remedies.h"
#include "scenario/step/setup_step.h"

/* A division of the GPUs and the batch. */
typedef struct {
    LhStepSizes sizes;
    uint32_t micro_batch_size, micro_batches; /* per data-parallel rank */
    LhScenario *scenario;                     /* owned: with these sizes */
    LhSetup *setup;                           /* owned: with its first schedule; NULL: rejected */
    char *refusal;                            /* owned: the reason */
} LhPlanShape;

/* A point of the space: a shape and the remaining choices. */
typedef struct {
    uint32_t shape;
    uint32_t variant; /* number of the schedule's arrangement; see lh_plan_case_init() */
    const LhSchedule *schedule;
    uint8_t checkpoint; /* LhCheckpoint */
    uint8_t shard;      /* LhShard */
    uint8_t order;      /* LhPipelineOrder, with several stages */
    uint16_t chunks;    /* chunks per stage, with several stages; else 1 */
    /* Found during the search, for a point that does not fit without; they change the checkpoint
     * (lh_plan_point_checkpoint()). */
    LhRemedies remedies;
} LhPlanPoint;

typedef struct {
    LhScenario *scenario; /* owned: as given, a step on this cluster */
    /* Owned: with one rank in each dimension that is not given; for what all points share. */
    LhSetup *setup;
    char *cluster; /* owned: "hgx-h100:2" */
    /* Owned: the frameworks that steps follow: the scenario's, or the defaults, "pytorch-fsdp (with
     * tensor parallelism megatron-lm)". */
    char *frameworks;
    uint32_t gpus;
    uint64_t sequences; /* per step */
    bool pipelines;     /* some points have several pipeline stages */
    /* Points that do not fit get remedies; these may be types of the optimizer's states, which
     * change what is computed. False unless the caller sets them. */
    bool remedies, types;
    GPtrArray *shapes;   /* of LhPlanShape * */
    GArray *points;      /* of LhPlanPoint */
    LhBoundCache *calls; /* owned; shared by all points */
} LhPlanSpace;

/*
 * Builds the space of @scenario on @cluster (NULL: the scenario's); parallelism that the scenario
 * does not fix is searched. LH_ERROR_INPUT if no point is possible. Uses @threads. Caller frees.
 */
LhPlanSpace *lh_plan_space_new(const LhScenario *scenario, const char *cluster, uint64_t sequences,
                               guint threads, GError **error);
void lh_plan_space_free(LhPlanSpace *space);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPlanSpace, lh_plan_space_free)

static inline const LhPlanPoint *
lh_plan_point(const LhPlanSpace *space, guint index)
{
    return &g_array_index(space->points, LhPlanPoint, index);
}

static inline LhCheckpoint
lh_plan_point_checkpoint(const LhPlanPoint *point)
{
    return lh_remedies_checkpoint(&point->remedies, (LhCheckpoint)point->checkpoint);
}

static inline const LhPlanShape *
lh_plan_shape(const LhPlanSpace *space, const LhPlanPoint *point)
{
    return (const LhPlanShape *)g_ptr_array_index(space->shapes, point->shape);
}
