/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a validation, shared by the files validate*.c.
 */
#pragma once

#include "runtime/process/processes.h"
#include "validate/joined_runs.h"
#include "validate/validate.h"

/* State of one schedule. */
typedef struct {
    LhValidation *row; /* borrowed */
    LhProgram *made;   /* NULL: the program is the setup's */
    const LhProgram *program;
    LhTime predicted_ps;
    LhJoinedRuns joined;
} LhValidateCase;

typedef struct {
    const LhSetup *setup;
    const LhValidateParams *params;
    LhValidated *validated;
    LhBackend backend; /* the parameters'; for a rank alone, with the link that replays messages */
    LhCollectiveWay way;
    GPtrArray *cases; /* of LhValidateCase *: the schedules that are run */
    LhProcesses processes;
    gint64 begun_us;
} LhValidateJob;

/* Predicts every schedule of the setup. Adds a row for each, and a case for each that is run. All
 * processes must predict the same. */
bool lh_validate_predict(LhValidateJob *job, GError **error);

/* Compares predictions with measurements of every case, and computes the overall errors. */
void lh_validate_sum_up(LhValidateJob *job);
