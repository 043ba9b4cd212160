/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Valid parameters for any schedule, for tests that run over all schedules: the wanted ones,
 * changed as little as the schedule's rules require.
 */
#pragma once

#include "options.h"
#include "sched/common/pass.h"

/*
 * Returns the program of @schedule for @wanted, with the other kind of attention if the schedule
 * supports only that, and with enough heads for every rank if it splits heads (grouped stays
 * grouped). NULL if the schedule does not support the number of ranks or the mask.
 */
static inline LhProgram *
fitting_program(const LhSchedule *schedule, const LhProgramParams *wanted)
{
    LhProgramParams p = *wanted;
    const uint32_t share = p.attention.heads / p.attention.groups;
    LhProgram *program;

    if (!lh_schedule_takes(schedule, p.attention.linear))
        p.attention.linear = !p.attention.linear;
    if (p.attention.linear && lh_pass_wire(&p) == LH_WIRE_16BIT)
        set_option(&p, "gradient_wire", LH_WIRE_DEFAULT);
    program = lh_program_new(schedule, &p, NULL);
    if (program != NULL)
        return program;
    p.attention.groups = p.ranks;
    p.attention.heads = p.ranks * share;
    return lh_program_new(schedule, &p, NULL);
}
