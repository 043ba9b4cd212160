/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shows of a training step's communication: how long ranks compute nothing because the kernel
 * that is due waits for communication of one dimension of parallelism, waiting for other ranks
 * included. Measured while a step is simulated, on a few ranks.
 */
#pragma once

#include "scenario/setup_simulate.h"

#define LH_STEP_WATCHED_RANKS 8 /* at most, evenly spaced */

typedef struct _LhStepWatch LhStepWatch;

/* Makes @hooks tell the watch of ops, too. The program and what the hooks point to must outlive it.
 * Caller frees. */
LhStepWatch *lh_step_watch_new(const LhProgram *program, LhHooks *hooks);
void lh_step_watch_free(LhStepWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhStepWatch, lh_step_watch_free)

/* After the run: seconds for each dimension, the mean of the watched ranks. */
void lh_step_watch_exposed(const LhStepWatch *watch, double exposed_s[LH_DIMENSIONS]);
