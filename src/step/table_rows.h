/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the rows of the tables as calls.
 */
#pragma once

#include "step/recorder.h"

/* Record a row of @table, if the layer has it; all rows of a table, in order; and attention,
 * forward or backward, in whose uses `part` is the module's slot. Outside its loop, the first row
 * of a loop records all of it, and the others nothing. */
void lh_step_run_row(LhStepRecorder *r, const LhStepNode *table, const LhStepNode *node,
                     uint32_t layer);
void lh_step_run_table(LhStepRecorder *r, const LhStepNode *table, uint32_t layer);
void lh_step_run_attention(LhStepRecorder *r, uint32_t layer, bool backward);

/* Whether the layer has the row. */
bool lh_step_has_row(const LhStepRecorder *r, const LhStepNode *node, uint32_t layer);

/* Tensor of a role; recomputed by the forward table if it was not kept. */
uint32_t lh_step_need(LhStepRecorder *r, LhStepRole role, uint32_t layer);

/* Creates a new tensor and makes it the current one of a role. */
uint32_t lh_step_new_role(LhStepRecorder *r, LhStepRole role, uint32_t layer);

/* Entry of a role's current tensor. The residual stream's gradient is one tensor for all layers. */
uint32_t *lh_step_role_place(LhStepRecorder *r, LhStepRole role, uint32_t layer);

/* A use of all parts of a role's tensor. */
LhStepUse lh_step_whole_role(const LhStepRecorder *r, LhStepRole role, uint32_t layer,
                             uint32_t tensor);
