/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of a program: which rank computes which block of attention and holds which tokens, as its
 * proof finds it; and of a training step, which GPUs form the groups of each kind of parallelism.
 */
#pragma once

#include "report/draw/figure.h"
#include "scenario/setup.h"

/*
 * Draws @program, which is the setup's. A step: its groups. A schedule: the blocks of the forward
 * pass of its first data-parallel group, which has at most LH_SCHEDULE_FIGURE_RANKS_MAX ranks, for
 * the first LH_SCHEDULE_FIGURE_SLICES_MAX slices of the heads. LH_ERROR_NO if there is nothing to
 * draw: linear attention has no blocks, and a program that is not proven has no figure.
 */
bool lh_schedule_figure_draw(const LhSetup *setup, const LhProgram *program, LhFigureTo to,
                             GError **error);

#define LH_SCHEDULE_FIGURE_RANKS_MAX 64
#define LH_SCHEDULE_FIGURE_SLICES_MAX 8
