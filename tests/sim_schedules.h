/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of schedules for the simulator's tests, and the times of their kernels. */
#pragma once

#include "sim/cost/cost.h"
#include "sim_world.h"

static const char *const schedule_names[] = { "ring", "zigzag", "striped", "dfa-unbalanced",
                                              "dfa-balanced" };

static inline LhProgram *
schedule(const char *name, const LhProgramParams *params)
{
    g_autoptr(GError) error = NULL;
    const LhSchedule *found = lh_schedule_find(name, &error);
    LhProgram *program = found != NULL ? lh_program_new(found, params, &error) : NULL;

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    return program;
}

/* Sum of the kernel times of a rank's program. */
static inline LhTime
kernel_time(const World *w, uint32_t rank, uint32_t *launches)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    LhTime sum = 0;
    LhCost cost;

    *launches = 0;
    lh_cost_init(&cost, w->params.cost, &w->device);
    lh_cursor_init(&cursor, w->program, rank);
    while (lh_cursor_step(&cursor, &buffer))
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            *launches += lh_op_on_stream(&buffer.ops[i]);
            if (buffer.ops[i].kind == LH_OP_COMPUTE)
                sum += lh_cost_compute(&cost, w->program, &buffer.ops[i], NULL);
        }
    lh_op_buffer_clear(&buffer);
    lh_cost_clear(&cost);
    return sum;
}
