/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exposed communication of a training step: how long ranks are idle because their next kernel waits
 * for communication of one dimension of parallelism, waiting for other ranks included. Measured
 * while a step is simulated, on a few ranks.
 */
#pragma once

#include "scenario/setup_simulate.h"

#define LH_STEP_WATCHED_RANKS 8 /* at most, evenly spaced */

typedef struct _LhStepWatch LhStepWatch;

/* Adds a watch to @hooks. It must not outlive the program and the targets of the hooks. Caller
 * frees. */
LhStepWatch *lh_step_watch_new(const LhProgram *program, LhHooks *hooks);
void lh_step_watch_free(LhStepWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhStepWatch, lh_step_watch_free)

/* After the run: exposed seconds of each dimension, mean over the watched ranks. */
void lh_step_watch_exposed(const LhStepWatch *watch, double exposed_s[LH_DIMENSIONS]);
