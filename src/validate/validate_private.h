/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A validation on its way: what the files validate*.c share.
 */
#pragma once

#include "runtime/process/processes.h"
#include "validate/joined_runs.h"
#include "validate/validate.h"

/* A schedule on its way. */
typedef struct {
    LhValidation *row; /* borrowed */
    LhProgram *made;   /* NULL: the setup's own */
    const LhProgram *program;
    LhTime predicted_ps;
    LhJoinedRuns joined;
} LhValidateCase;

typedef struct {
    const LhSetup *setup;
    const LhValidateParams *params;
    LhValidated *validated;
    LhBackend backend; /* the parameters'; of a rank alone, with what plays messages */
    LhCollectiveWay way;
    GPtrArray *cases; /* of LhValidateCase *: those that are run */
    LhProcesses processes;
    gint64 begun_us;
} LhValidateJob;

/* Predicts every schedule of the setup, with a row for each and a case for those that are run; all
 * processes must predict the same. */
bool lh_validate_predict(LhValidateJob *job, GError **error);

/* Compares what was measured of every case with what was predicted, and sums up over all of them.
 */
void lh_validate_sum_up(LhValidateJob *job);
