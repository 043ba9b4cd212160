/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a setup that is about training steps.
 */
#pragma once

#include "scenario/setup.h"
#include "scenario/setup_params.h"

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

/*
 * The program of the setup with @schedule: one attention module, or a whole step with it. A step of
 * a model that has layers of softmax and of linear attention takes the other kind's from the
 * scenario. Refusals are LH_ERROR_NO. Caller frees.
 */
LhProgram *lh_setup_program(const LhSetup *setup, const LhSchedule *schedule, GError **error);

/* What the program of a step is made with. In *@model, which must live as long as the parameters,
 * the model as it is run with @schedule; all but its heads and width are the setup's. */
LhStepParams lh_setup_step_params(const LhSetup *setup, const LhSchedule *schedule, LhModel *model);

/* The same of a scenario that describes a step, of which files are loaded already, for @ranks
 * ranks.
 */
LhProgram *lh_setup_step_program(const LhScenario *scenario, const LhSources *from,
                                 const LhSchedule *schedule, uint32_t ranks, GError **error);
