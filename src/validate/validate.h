/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validation: simulates and executes a program, and joins the two timelines on rank and op.
 */
#pragma once

#include "execute/single_rank.h"
#include "measure/measure.h"
#include "scenario/setup.h"
#include "validate/validation.h"

typedef struct {
    const LhBackend *backend; /* if ranks are processes, all of them call lh_validate() */
    /* A rank that runs alone while the others are replayed from the prediction; the backend's
     * ranks must then all be in this process. */
    LhSingleRank alone;
    uint32_t kernel_set; /* of the backend's device */
    LhStatistic statistic;
    uint64_t repeat;     /* counted runs of each schedule, after a warm-up; at least 1 */
    LhTime budget_ps;    /* no run begins after this long; 0: no limit */
    int64_t deadline_us; /* abort after so long without progress; 0: 120 s */
    bool pin;            /* pin each compute stream to a core */
    /* Called in the first process after all predictions and before any run; may be NULL. Returning
     * false with @error set ends the validation. */
    bool (*predicted)(void *data, const LhValidated *validated, GError **error);
    void *predicted_data;
    /* Cancellation, with one process only. It is checked while times are predicted
     * (LH_ERROR_INTERRUPTED if cancelled then) and before each run (the result then has what was
     * measured so far). Its job count is ignored. */
    LhTask task;
} LhValidateParams;

/* Predicts every schedule of the setup, then runs them in rounds: one run of each schedule, in an
 * order drawn by the scenario's seed. NULL if a run fails or a prediction is cancelled. Caller
 * frees. */
LhValidated *lh_validate(const LhSetup *setup, const LhValidateParams *params, GError **error);
