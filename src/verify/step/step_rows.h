/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of compute ops that the table of a layer has.
 */
#pragma once

#include "verify/step/step_values.h"

/* The effect of a compute op that the table has. */
void lh_step_rows_apply(LhStepValues *v, uint32_t op);
/* All that a compute op writes is not what it should be. */
void lh_step_rows_write_suspect(LhStepValues *v, uint32_t op);
/* Notes that a forward row, or (@row LH_NONE) attention, runs for @segment; false: it has before.
 */
bool lh_step_rows_note_forward(LhStepValues *v, uint32_t op, uint32_t row, uint32_t segment);
