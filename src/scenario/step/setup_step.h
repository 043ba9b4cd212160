/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training step of a setup.
 */
#pragma once

#include "scenario/setup.h"
#include "scenario/setup_params.h"

/* Sizes of the parallel dimensions of a step. */
typedef struct {
    uint32_t tensor, context, data, pipeline;
} LhStepSizes;

/* Reads them from the scenario for @ranks ranks in total. Context parallelism takes the ranks that
 * the given sizes leave. */
bool lh_setup_step_sizes(const LhScenario *scenario, uint32_t ranks, LhStepSizes *sizes,
                         GError **error);

/* Rejects fields of steps without --step, and fields that a step does not read. */
bool lh_setup_check_step_fields(const LhScenario *scenario, GError **error);

/* Fills setup->step; the rest of the setup must be complete. */
bool lh_setup_fill_step(LhSetup *setup, const LhStepSizes *sizes, GError **error);
void lh_setup_clear_step(LhSetup *setup);

/* Pads the heads of @model, the step's, so that context-parallel ranks share them evenly with
 * @schedule, if the scenario asks for padding. */
void lh_setup_step_pad(const LhSetup *setup, const LhSchedule *schedule, LhModel *model);

/* Checks that the default frameworks of @scenario's steps (with and without tensor parallelism) can
 * be read. A search calls it first, so that an unreadable file is an error and not a rejected
 * configuration. */
bool lh_setup_step_check_frameworks(const LhScenario *scenario, GError **error);

/* Sets shard and checkpoint of the step, as its framework implements them. */
void lh_setup_step_policy(LhSetupStep *step, LhShard shard, LhCheckpoint checkpoint);

/*
 * The setup's program with @schedule: one attention module, or a whole step. A step of a model with
 * softmax and linear attention takes the schedule of the other kind from the scenario. Rejections
 * are LH_ERROR_NO. Caller frees.
 */
LhProgram *lh_setup_program(const LhSetup *setup, const LhSchedule *schedule, GError **error);

/* The step's parameters with @schedule. Writes to *@model, which must outlive them, the model as it
 * is run; everything but its heads and width is the setup's. */
LhStepParams lh_setup_step_params(const LhSetup *setup, const LhSchedule *schedule, LhModel *model);

/* The same from a step's scenario whose files are already loaded, for @ranks ranks. */
LhProgram *lh_setup_step_program(const LhScenario *scenario, const LhSources *from,
                                 const LhSchedule *schedule, uint32_t ranks, GError **error);
