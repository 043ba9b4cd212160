/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicted beside measured: a program is played and executed, and the two timelines are joined on
 * rank and op.
 */
#pragma once

#include "execute/single_rank.h"
#include "measure/measure.h"
#include "scenario/setup.h"
#include "validate/validation.h"

typedef struct {
    const LhBackend *backend; /* with processes, all of them call lh_validate() */
    LhSingleRank alone;  /* a rank that runs alone, while the others are played from the prediction;
                       the backend is one whose ranks are all in this process */
    uint32_t kernel_set; /* of the backend's device */
    LhStatistic statistic;
    uint64_t repeat;     /* runs of each schedule after one that does not count; at least 1 */
    LhTime budget_ps;    /* no run begins after so long; 0: all do */
    int64_t deadline_us; /* nothing has completed for so long: give up; 0: 120 s */
    bool pin;            /* compute streams stay on a core of their own */
    /* Called in the first process when everything has been predicted, before anything runs; may be
     * NULL. False with @error ends it. */
    bool (*predicted)(void *data, const LhValidated *validated, GError **error);
    void *predicted_data;
    /* Of one process alone: asked before each run, and ends it with what was measured; and while
     * times are predicted, before which there is nothing to tell. Its jobs are not read. */
    LhTask task;
} LhValidateParams;

/* Predicts every schedule of the setup, then runs them: in rounds of one run each, whose order is
 * drawn by the scenario's seed. NULL if a run breaks. Caller frees. */
LhValidated *lh_validate(const LhSetup *setup, const LhValidateParams *params, GError **error);
