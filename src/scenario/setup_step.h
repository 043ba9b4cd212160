/*
 * The part of a setup that is about training steps.
 */
#pragma once

#include "scenario/setup.h"

/* How many ranks each dimension of a step has. */
typedef struct {
    uint32_t tensor, context, data, pipeline;
} LhStepSizes;

/* What the scenario says of them, for @ranks ranks in all: what is left open is filled up with
 * context parallelism. */
bool lh_setup_step_sizes(const LhScenario *scenario, uint32_t ranks, LhStepSizes *sizes,
                         GError **error);

/* Refuses fields of steps where there is none, and those that a step does not read. */
bool lh_setup_check_step_fields(const LhScenario *scenario, GError **error);

/* Fills setup->step, whose other parts are there. */
bool lh_setup_fill_step(LhSetup *setup, const LhStepSizes *sizes, GError **error);
void lh_setup_clear_step(LhSetup *setup);

/* Where the scenario has heads padded: makes those of @model, which is the step's, as many as
 * context-parallel ranks share evenly with @schedule. */
void lh_setup_step_pad(const LhSetup *setup, const LhSchedule *schedule, LhModel *model);

/* Whether those that steps of @scenario follow, with tensor parallelism and without, can be read:
 * of many ways at once, one that cannot be read is no way that is refused. */
bool lh_setup_step_check_frameworks(const LhScenario *scenario, GError **error);

/* Makes it a step of this shard and checkpoint, as its framework does them. */
void lh_setup_step_policy(LhSetupStep *step, LhShard shard, LhCheckpoint checkpoint);
