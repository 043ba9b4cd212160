/*
 * Several schedules on one cluster: which is fastest, and what bounds it.
 */
#pragma once

#include "compare/bottleneck.h"
#include "compare/error_bar.h"
#include "compare/memory_relief.h"
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

/* How to compare. */
typedef struct {
    guint jobs;    /* simulations at once; 0: as the cores and the memory allow */
    double within; /* leave out what takes more than so many times the shortest time, >= 1; 0: none
                    */
    /* Called for each row that has run, as they come, on any thread but one at a time; NULL: none.
     */
    void (*came)(void *data, const LhCompareRow *row);
    void *came_data;
    bool no_bound; /* neither what binds the winner nor what would help is asked */
    /* A program that is compared with the schedules, by its name; borrowed. NULL: none. */
    const LhProgram *also;
} LhCompareOptions;

typedef struct {
    GPtrArray *rows; /* of LhCompareRow *: those that ran by time, then the others in the order of
                        the table */
    guint fit_count; /* rows in state RAN; the first of them wins */
    LhBottleneck *bound; /* what binds the winner; NULL without one or with free communication */
    LhReliefs *reliefs;  /* what would help the row that needs least, if none fits and some do not;
                            else NULL */
    bool interrupted;    /* by the hook's progress: some rows, or the bound, are missing */
} LhComparison;

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

/* Plays every schedule of the setup, several at once; the comparison is the same however many.
 * @options may be NULL. Caller frees. */
LhComparison *lh_compare(const LhSetup *setup, const LhCompareOptions *options,
                         const LhHooks *hooks, GError **error);
void lh_comparison_free(LhComparison *comparison);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhComparison, lh_comparison_free)

/* Of the rows that are out of memory the one that needs least, the first of equal ones; NULL: none.
 */
const LhCompareRow *lh_compare_least(const LhComparison *comparison);

/* Sets `error` and `tied` of the rows that ran, which are in order of time. */
void lh_compare_tell_apart(const LhSetup *setup, const LhComparison *comparison);

/* Sums over the ranks of a result; exact. */
typedef struct {
    LhWide span_ps; /* ranks x makespan */
    LhWide busy_ps;
    LhWide idle_ps[LH_IDLE_PARTS]; /* busy + sum(idle) = span */
    LhWide exposed_ps;             /* communication tiers of idle_ps */
    LhWide sent_bytes;
    LhWide tier_bytes[LH_TIERS];
    LhWide flops;
    uint64_t sent_bytes_max; /* of one rank */
    uint64_t peak_bytes;     /* the largest of one rank */
    uint32_t peak_rank;
} LhTotals;

void lh_totals(const LhSimResult *result, LhTotals *totals);
