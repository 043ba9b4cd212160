/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/compare_row.h"

#include "base/error.h"
#include "compare/time_range.h"
#include "scenario/step/setup_step.h"

const char *const lh_row_state_names[] = { "ok",          "out of memory", "left out",
                                           "interrupted", "failed",        "refused" };

void
lh_compare_row_free(LhCompareRow *row)
{
    if (row == NULL)
        return;
    lh_program_free(row->made);
    lh_sim_result_free(row->result);
    g_free(row->reason);
    g_free(row);
}

double
lh_row_seconds(const LhSetup *setup, const LhCompareRow *row)
{
    if (row->result == NULL)
        return 0;
    return setup->step != NULL ? row->step.iteration_s
                               : (double)row->result->makespan_ps / (double)LH_PS_PER_S;
}

static void
give_reason(LhCompareRow *row, LhRowState state, const GError *error)
{
    row->state = state;
    row->reason = g_strdup(error->message);
}

void
lh_compare_play(LhCompareRow *row, const LhSetup *setup, const LhHooks *hooks)
{
    g_autoptr(GError) error = NULL;
    LhHooks wanted = hooks != NULL ? *hooks : (LhHooks){ 0 };

    if (setup->step != NULL)
        lh_step_watch(row->program, &wanted);
    row->result = lh_time_range_simulate(setup, row->program, &wanted, &error);
    if (row->result == NULL) {
        give_reason(row,
                    g_error_matches(error, LH_ERROR, LH_ERROR_NO) ? LH_ROW_REFUSED : LH_ROW_FAILED,
                    error);
        return;
    }
    if (setup->cost == LH_COST_DEVICE)
        row->time_error = lh_time_error(setup, row->result);
    if (setup->step != NULL)
        row->step = lh_step_answer_of(setup, row->program, row->result);
    if (row->result->out_of_memory != NULL || !lh_host_memory_fits(&row->result->host_memory))
        row->state = LH_ROW_NO_MEMORY;
}

LhCompareRow *
lh_compare_row_of_schedule(const LhSetup *setup, const LhSchedule *schedule)
{
    g_autoptr(GError) error = NULL;
    LhCompareRow *row = g_new0(LhCompareRow, 1);

    row->name = schedule->name;
    row->made = lh_setup_program(setup, schedule, &error);
    row->program = row->made;
    if (row->program == NULL)
        give_reason(row, LH_ROW_REFUSED, error);
    return row;
}

LhCompareRow *
lh_compare_row_of_program(const LhProgram *program)
{
    LhCompareRow *row = g_new0(LhCompareRow, 1);

    row->name = program->name;
    row->program = program;
    return row;
}

LhCompareRow *
lh_compare_run(const LhSetup *setup, const LhSchedule *schedule, const LhHooks *hooks)
{
    LhCompareRow *row = lh_compare_row_of_schedule(setup, schedule);

    if (row->program != NULL)
        lh_compare_play(row, setup, hooks);
    return row;
}

LhCompareRow *
lh_compare_run_program(const LhSetup *setup, const LhProgram *program, const LhHooks *hooks)
{
    LhCompareRow *row = lh_compare_row_of_program(program);

    lh_compare_play(row, setup, hooks);
    return row;
}
