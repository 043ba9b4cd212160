/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of compute ops that are rows of the table of a layer.
 */
#pragma once

#include "verify/step/step_values.h"

/* Applies the effect of a compute op that is in the table. */
void lh_step_rows_apply(LhStepValues *v, uint32_t op);
/* Marks everything that a compute op writes as suspect. */
void lh_step_rows_write_suspect(LhStepValues *v, uint32_t op);
/* Records that a row before the loss, or attention, runs for @turn; false if it has run before. */
bool lh_step_rows_note_forward(LhStepValues *v, uint32_t op, uint32_t row, uint32_t turn);
