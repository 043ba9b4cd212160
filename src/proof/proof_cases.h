/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proving a schedule for many numbers of ranks. What the scenario says is taken as it says it; what
 * it leaves open is varied: heads are made to fit, and masks and the schedule's own options are
 * gone through one at a time.
 */
#pragma once

#include "proof/proven.h"
#include "scenario/setup_params.h"
#include "scenario/setup_simulate.h"

typedef struct {
    const LhScenario *scenario;
    LhSources sources;
    unsigned passes; /* bit LhPass: asked for */
    LhTask task;     /* told of the schedule and its programs proven so far; proofs go on all the
                        same, on every core */
} LhProveParams;

/* Proves @schedule for the numbers of @ranks (uint64_t). NULL only for a scenario that contradicts
 * itself. Caller frees. */
LhProven *lh_prove(const LhProveParams *params, const LhSchedule *schedule, const GArray *ranks,
                   GError **error);

/* About how many seconds that takes: what it would prove is made and counted. 0 for a scenario that
 * contradicts itself. */
double lh_prove_work(const LhProveParams *params, const LhSchedule *schedule, const GArray *ranks);
