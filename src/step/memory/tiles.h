/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over tiles of a rank's rows: losses in chunks, tiled MLPs.
 */
#pragma once

#include "step/recorder.h"

/*
 * Sets the number of tiles of each loop and the cuts of rows; the rows must be set. Without a given
 * size, chunks of the loss have, by the kind of loss,
 *
 *     chunked        1,024 rows
 *     tiled          rows whose fp32 logits take 1 GiB (ArcticTraining, for ALST)
 *     fused-linear   rows / ceil(vocabulary / hidden), rounded up to a power of two, so that the
 *                    logits of a chunk take about what all hidden rows take (Liger-Kernel)
 */
void lh_step_cut_tiles(LhStepPlan *plan);

/* Whether the row belongs to a loop that is to be recorded, and not yet begun. */
bool lh_step_begins_loop(const LhStepRecorder *r, const LhStepNode *node);

/* Records the loop of @table that @node belongs to: all its rows, tile by tile. */
void lh_step_run_tiles(LhStepRecorder *r, const LhStepNode *table, const LhStepNode *node,
                       uint32_t layer);

/* The part of @use, which is all of a role's tensor, that belongs to the current tile, if any. */
LhStepUse lh_step_use_of_tile(const LhStepRecorder *r, LhStepRole role, LhStepUse use);

/* Whether the role's current tensor was made in the loop for all tiles, so that each tile writes
 * its part. */
bool lh_step_made_in_loop(LhStepRecorder *r, LhStepRole role, uint32_t layer);
