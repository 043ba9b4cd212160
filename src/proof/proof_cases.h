/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proving a schedule for many numbers of ranks. Settings of the scenario are kept; everything else
 * is varied: heads are adjusted to fit, and masks and the schedule's own options are tried one at a
 * time.
 */
#pragma once

#include "proof/proven.h"
#include "scenario/setup_params.h"
#include "scenario/setup_simulate.h"

typedef struct {
    const LhScenario *scenario;
    LhSources sources;
    unsigned passes; /* bit set of LhPass to prove */
    LhTask task;     /* reports the schedule of the last proof and all programs proven so far;
                        proofs use every core regardless */
} LhProveParams;

/*
 * Proves each of @schedules (const LhSchedule *) for the numbers of @ranks (uint64_t). Returns an
 * LhProven for each of them, in their order; NULL only for a contradictory scenario. Caller unrefs.
 */
GPtrArray *lh_prove(const LhProveParams *params, const GPtrArray *schedules, const GArray *ranks,
                    GError **error);

/* Estimates the time of these proofs in seconds, by building and counting the programs. 0 for a
 * contradictory scenario. */
double lh_prove_work(const LhProveParams *params, const GPtrArray *schedules, const GArray *ranks);
