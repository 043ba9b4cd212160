/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exposed communication of a training step: how long ranks are idle because their next kernel waits
 * for communication of one dimension of parallelism, waiting for other ranks included. Measured
 * while a step is simulated, on a few ranks.
 */
#pragma once

#include "scenario/setup_simulate.h"

#define LH_STEP_WATCHED_RANKS 8 /* at most, evenly spaced */

/* Lets a run with @hooks measure it. */
void lh_step_watch(const LhProgram *program, LhHooks *hooks);

/* Exposed seconds of each dimension, mean over the ranks measured; 0 if none was. */
void lh_step_exposed(const LhSimResult *result, double exposed_s[LH_STEP_EXPOSED]);
