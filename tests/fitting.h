/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters that a schedule takes, for tests that run over all of them: the wanted ones, changed
 * as little as its rules ask for.
 */
#pragma once

#include "options.h"
#include "sched/common/pass.h"

/*
 * The program of @schedule for @wanted, with the other kind of attention if it takes only that, and
 * with heads for every rank if it splits heads (grouped stays grouped). NULL: the schedule cannot
 * do it at all (the number of ranks, the mask).
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
