/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways of training a model on one cluster: every way to cut its GPUs into tensor-, context- and
 * data-parallel ranks and stages of a pipeline, every schedule of attention with each way in which
 * it can arrange its ranks, what is recomputed, what is sharded, how many sequences make a
 * micro-batch, and in which order and how many chunks of layers stages work. The sequences of a
 * step are always the same. What a scenario gives has its value and no other.
 *
 * Pipelines are looked at whose stages have equally many layers, at least with the embedding and
 * the loss counted, and of micro-batches as many as stages or more.
 */
#pragma once

#include "planner/bound_cache.h"
#include "scenario/setup_step.h"

/* One way to cut the GPUs and the batch. */
typedef struct {
    LhStepSizes sizes;
    uint32_t micro_batch_size, micro_batches; /* of a data-parallel rank */
    LhScenario *scenario;                     /* owned: with these sizes */
    LhSetup *setup; /* owned: of its first schedule; NULL: there is no such way */
    char *refusal;  /* owned: why not */
} LhPlanShape;

/* The rest of what decides a step: a point of the space. */
typedef struct {
    uint32_t shape;
    uint32_t variant; /* of the schedule's arrangements; see lh_plan_case_init() */
    const LhSchedule *schedule;
    uint8_t checkpoint; /* LhCheckpoint */
    uint8_t shard;      /* LhShard */
    uint8_t order;      /* LhPipelineOrder: of several stages */
    uint16_t chunks;    /* of layers, of each of several stages; else 1 */
} LhPlanPoint;

typedef struct {
    LhScenario *scenario; /* owned: as given, a step on this cluster */
    LhSetup *setup; /* owned: of one rank in each dimension that was not given, for what all points
                       have in common */
    char *cluster;  /* owned: "hgx-h100:2" */
    /* Owned: whose ways steps follow: the scenario's framework, or what each point has without
     * one, "pytorch-fsdp (with tensor parallelism megatron-lm)". */
    char *frameworks;
    uint32_t gpus;
    uint64_t sequences;  /* of a step */
    bool pipelines;      /* some points have several stages */
    GPtrArray *shapes;   /* of LhPlanShape * */
    GArray *points;      /* of LhPlanPoint */
    LhBoundCache *calls; /* owned: of all points */
} LhPlanSpace;

/*
 * The space of @scenario, of which everything but the parallelism is taken, on @cluster (NULL: the
 * scenario's). LH_ERROR_INPUT for what no point could have. @threads set it up. Caller frees.
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

static inline const LhPlanShape *
lh_plan_shape(const LhPlanSpace *space, const LhPlanPoint *point)
{
    return (const LhPlanShape *)g_ptr_array_index(space->shapes, point->shape);
}
