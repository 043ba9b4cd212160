/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One schedule or program that is played: a row of a comparison.
 */
#pragma once

#include "compare/error_bar.h"
#include "compare/step_plan.h"
#include "scenario/setup_simulate.h"

typedef enum {
    LH_ROW_RAN,
    /* Ran, but its attention buffers and the least share of the model's weights are more than the
     * device has. That a row is RAN does not say that a step fits: activations are left out. */
    LH_ROW_NO_MEMORY,
    LH_ROW_LEFT_OUT, /* takes too long beside the fastest */
    LH_ROW_INTERRUPTED,
    LH_ROW_FAILED,  /* could not end: a failed link on a route */
    LH_ROW_REFUSED, /* the schedule cannot do this */
} LhRowState;

/* "ok", "out of memory", "left out", ... */
extern const char *const lh_row_state_names[];

typedef struct {
    const char *name; /* borrowed */
    LhRowState state;
    char *reason;             /* of rows without result */
    const LhProgram *program; /* NULL if refused; borrowed, or that below */
    LhProgram *made;          /* owned: of a schedule; NULL: the program is the setup's */
    LhSimResult *result;      /* of those that ran, also with too little memory; else NULL */
    LhStepAnswer step;        /* of a training step that ran */
    LhTimeError time_error;   /* of its time; 0 if constants are no machine's */
    LhTime ended_ps;          /* simulated time at which the run ended, failed or was abandoned */
    /* Beside the winner: what their difference is good to, as a share of the winner's time, and
     * whether it is no more than that. 0 and false for the winner, and with free communication. */
    double error;
    bool tied;
} LhCompareRow;

/* Plays one schedule. Never fails for what the schedule cannot do: that is a state of the row.
 * Caller frees. */
LhCompareRow *lh_compare_run(const LhSetup *setup, const LhSchedule *schedule,
                             const LhHooks *hooks);
/* As above, for a program that is no schedule's; it outlives the row. */
LhCompareRow *lh_compare_run_program(const LhSetup *setup, const LhProgram *program,
                                     const LhHooks *hooks);
void lh_compare_row_free(LhCompareRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCompareRow, lh_compare_row_free)

/* The time of a row that ran: of a step, with what it takes beside its program; 0 without one. */
double lh_row_seconds(const LhSetup *setup, const LhCompareRow *row);

/* Plays the row's program. */
void lh_compare_play(LhCompareRow *row, const LhSetup *setup, const LhHooks *hooks);

/* A row of @schedule, which is not played yet; refused if it cannot do this. Caller frees. */
LhCompareRow *lh_compare_row_of_schedule(const LhSetup *setup, const LhSchedule *schedule);

/* Likewise of a program that is no schedule's and outlives the row. */
LhCompareRow *lh_compare_row_of_program(const LhProgram *program);
