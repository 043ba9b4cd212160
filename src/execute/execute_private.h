/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What executing a module (execute.c) and training (execute_training.c) share.
 */
#pragma once

#include "execute/execute.h"

typedef struct {
    const LhSetup *setup;
    const LhExecuteParams *params;
    const LhOpenControl *control;
} LhExecuteJob;

/* How many runs come first whose time does not count: on a GPU the first one loads kernels and
 * makes cuDNN's plans. With a fault inserted there is none: what the fault does is to be seen at
 * once. */
uint64_t lh_execute_unmeasured(const LhExecuteParams *params);

/* Runs the program once; @last: of all runs. NULL with @error. Caller frees. */
LhRunResult *lh_execute_once(const LhExecuted *executed, LhRunParams *run,
                             const LhExecuteParams *params, bool last, GError **error);

/* Keeps @run, which it takes over, as the last one; its bits must be those of the first. Its time
 * counts if it is @measured. */
void lh_executed_take(LhExecuted *executed, LhRunResult *run, bool measured);

/* Runs steps of training and holds them against the reference: fills in all of @executed but the
 * counts. */
bool lh_execute_training(LhExecuted *executed, const LhExecuteJob *job, const LhRunParams *params,
                         GError **error);
