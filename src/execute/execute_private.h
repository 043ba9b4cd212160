/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State shared by the execution of modules (execute.c), of training (execute_training.c) and of a
 * forward pass alone (execute_prefill.c).
 */
#pragma once

#include "execute/execute.h"

typedef struct {
    const LhSetup *setup;
    const LhExecuteParams *params;
    const LhOpenControl *control;
} LhExecuteJob;

/* Number of warm-up runs: one on a GPU, where the first run loads kernels and makes cuDNN's plans;
 * none if a fault is injected, so that its effect shows at once. */
uint64_t lh_execute_unmeasured(const LhExecuteParams *params);

/* Runs the program once. @last: this is the last run, which gets the timeline. NULL with @error.
 * Caller frees. */
LhRunResult *lh_execute_once(const LhExecuted *executed, LhRunParams *run,
                             const LhExecuteParams *params, bool last, GError **error);

/* Takes ownership of @run and keeps it as the last one. Compares its outputs with the first run's,
 * bit by bit. Its time counts if it is @measured. */
void lh_executed_take(LhExecuted *executed, LhRunResult *run, bool measured);

/* Runs training steps and compares them with the reference. Fills in all of @executed but the
 * counts. */
bool lh_execute_training(LhExecuted *executed, const LhExecuteJob *job, const LhRunParams *params,
                         GError **error);

/* Runs a forward pass alone and compares what it leaves with the reference. Likewise. */
bool lh_execute_prefill(LhExecuted *executed, const LhExecuteJob *job, const LhRunParams *params,
                        GError **error);
