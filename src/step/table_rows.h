/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the tables, written down as calls.
 */
#pragma once

#include "step/recorder.h"

/* Writes down a row, if the layer has it; the rows of a table, in their order; and attention,
 * forward or backward, whose uses name the module's slots in their `part`. */
void lh_step_run_row(LhStepRecorder *r, const LhStepNode *node, uint32_t layer);
void lh_step_run_table(LhStepRecorder *r, const LhStepNode *table, uint32_t layer);
void lh_step_run_attention(LhStepRecorder *r, uint32_t layer, bool backward);

/* Whether the layer has the row. */
bool lh_step_has_row(const LhStepRecorder *r, const LhStepNode *node, uint32_t layer);

/* The tensor that a role is; made again by the forward table if it was not kept. */
uint32_t lh_step_need(LhStepRecorder *r, LhStepRole role, uint32_t layer);

/* A new tensor for a role, which it is from now on. */
uint32_t lh_step_new_role(LhStepRecorder *r, LhStepRole role, uint32_t layer);

/* Where it is noted which tensor a role is: that of the residual stream's gradient is one for all
 * layers. */
uint32_t *lh_step_role_place(LhStepRecorder *r, LhStepRole role, uint32_t layer);

/* All parts of a role's tensor. */
LhStepUse lh_step_whole_role(const LhStepRecorder *r, LhStepRole role, uint32_t layer,
                             uint32_t tensor);
