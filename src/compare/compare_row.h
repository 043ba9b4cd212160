/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of a comparison: one schedule or program and its simulation.
 */
#pragma once

#include "compare/error_bar.h"
#include "compare/step_plan.h"
#include "scenario/setup_simulate.h"

typedef enum {
    LH_ROW_RAN,
    /* Ran, but the attention buffers and the minimum share of the model's weights exceed the
     * device's memory. A row in state RAN does not prove that a step fits: activations are not
     * included. */
    LH_ROW_NO_MEMORY,
    LH_ROW_LEFT_OUT, /* too slow compared to the fastest */
    LH_ROW_INTERRUPTED,
    LH_ROW_FAILED,  /* cannot complete: a failed link on a route */
    LH_ROW_REFUSED, /* the schedule does not support the case */
} LhRowState;

/* "ok", "out of memory", "left out", ... */
extern const char *const lh_row_state_names[];

typedef struct {
    const char *name; /* borrowed */
    LhRowState state;
    char *reason;             /* why a row has no result */
    const LhProgram *program; /* NULL if refused; borrowed, or `made` */
    LhProgram *made;          /* owned: the schedule's program; NULL: the program is the setup's */
    LhSimResult *result;      /* of rows that ran, also without enough memory; else NULL */
    LhStepAnswer step;        /* of a training step that ran */
    LhTimeError time_error;   /* error bar of its time; 0 if the constants are no machine's */
    LhTime ended_ps; /* simulated time at which the run completed, failed or was abandoned */
    /* Compared with the winner: the error bar of their difference, as a share of the winner's time,
     * and whether the difference is within it. 0 and false for the winner, and with free
     * communication. */
    double error;
    bool tied;
} LhCompareRow;

/* Simulates one schedule. A case that the schedule does not support is no error but a state of the
 * row. Caller frees. */
LhCompareRow *lh_compare_run(const LhSetup *setup, const LhSchedule *schedule,
                             const LhHooks *hooks);
/* As above, for a program that is not a schedule's and outlives the row. */
LhCompareRow *lh_compare_run_program(const LhSetup *setup, const LhProgram *program,
                                     const LhHooks *hooks);
void lh_compare_row_free(LhCompareRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCompareRow, lh_compare_row_free)

/* Time of a row that ran, in seconds: of a step, with its overhead beside the program; 0 without a
 * result. */
double lh_row_seconds(const LhSetup *setup, const LhCompareRow *row);

/* Simulates the row's program. */
void lh_compare_play(LhCompareRow *row, const LhSetup *setup, const LhHooks *hooks);

/* Makes a row of @schedule, not simulated yet; refused if the schedule does not support the case.
 * Caller frees. */
LhCompareRow *lh_compare_row_of_schedule(const LhSetup *setup, const LhSchedule *schedule);

/* Likewise for a program that is not a schedule's and outlives the row. */
LhCompareRow *lh_compare_row_of_program(const LhProgram *program);
