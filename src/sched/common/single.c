/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/common/single.h"

#include "sched/common/linear_shared.h"

typedef struct {
    LhPassSlots io;
    uint32_t parts;
    LhKernelArgs block;
} SinglePlan;

static void
single_declare(LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhPassSizes z = lh_pass_sizes(p, 0);
    SinglePlan *plan = g_new0(SinglePlan, 1);

    program->plan = plan;
    program->plan_free = g_free;
    plan->io = lh_pass_declare(program, &z);
    plan->parts = lh_placement_parts(&program->placement);
    plan->block =
        lh_pass_block_args(p, z.n, z.n, p->mask.causal ? LH_MASK_CAUSAL : LH_MASK_FULL, 0);
    if (!lh_mask_is_plain(&p->mask)) {
        const LhPassRows rows = {
            .first = { .stride = 1, .count = z.n / plan->parts },
            .part_step = (int64_t)(z.n / plan->parts),
            .parts = plan->parts,
        };

        plan->block = lh_pass_position_args(program, rows, rows);
    }
    plan->block.first = true;
}

static void
single_emit(LhEmitter *e, uint32_t step)
{
    const SinglePlan *plan = e->program->plan;

    lh_pass_enter(e, step, 1);
    if (e->phase == LH_PHASE_BACKWARD)
        lh_pass_attend_grad(e, &plan->block, &plan->io, 0, plan->parts);
    else
        lh_pass_attend(e, &plan->block, &plan->io, 0, plan->parts);
}

static uint64_t
single_bytes_sent(const LhProgramParams *p, uint32_t rank)
{
    (void)p;
    (void)rank;
    return 0;
}

static uint64_t
single_flops(const LhProgramParams *p, uint32_t rank)
{
    return p->attention.linear ? lh_linear_chain_flops(p, rank) : lh_contiguous_flops(p, rank);
}

static uint64_t
single_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    (void)rank;
    return lh_pass_peak_bytes(p, 0, 0);
}

const LhClosedForms lh_single_closed = {
    .bytes_sent = single_bytes_sent,
    .flops = single_flops,
    .peak_bytes = single_peak_bytes,
    .idle_unit = lh_pass_idle_none,
    .idle_flops = lh_pass_idle_none,
};

LhProgram *
lh_program_new_single(const char *name, LhPlacementKind placement, const LhProgramParams *params)
{
    static const LhGenerator generator = { .steps = lh_pass_steps, .emit = single_emit };
    LhProgram *program = lh_program_create(name, &generator, params, placement);

    program->closed = &lh_single_closed;
    single_declare(program);
    return program;
}
