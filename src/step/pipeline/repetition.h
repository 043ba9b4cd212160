/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repetition of micro-batches in a pipeline. In 1F1B, between warm-up and cool-down, the turns of a
 * stage repeat with later micro-batches. Most of them are left out before the stage is recorded, so
 * that recording takes time and memory for a few micro-batches only, and the stage's list repeats a
 * run of chunks in their place (LhStepRepeat).
 *
 * Tensors take the lowest free place of their shape, so places repeat only when every micro-batch
 * in flight has been replaced: after as many micro-batches as are in flight (with several chunks,
 * as many rounds of all stages as there are works in flight). That is the unit that repeats. Two
 * units one after the other are recorded and compared call by call. If they are equal, so is what
 * they leave behind: every tensor in flight, the places it holds, and the latest calls that touched
 * them belong to the unit, so any number of units can follow. If they differ, the whole step is
 * recorded.
 */
#pragma once

#include "step/step_private.h"

/* Turns with units left out. */
typedef struct {
    GArray *turns;           /* of LhStepTurn; the caller unrefs */
    uint32_t micro_batches;  /* as many as the turns have */
    uint32_t unit, left_out; /* micro-batches of a unit; units left out; 0: none */
} LhStepShort;

/* Leaves out what repeats of the turns of a stage. */
LhStepShort lh_step_shorten(const LhStepParams *params, uint32_t stage, const GArray *turns);

/* Lets @list repeat @left_out more units of @unit micro-batches; it has been ordered and cut into
 * chunks. False: it does not have two equal units. */
bool lh_step_repeat(const LhStepPlan *plan, LhStepList *list, uint32_t unit, uint32_t left_out);
