/* On a CPU; what it does says the row, kernels/linear_dstate.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return lh_weights_scratch(a->nq) + lh_state_scratch(a);
}

static bool
prepare(const LhCall *call, LhStateSum *s)
{
    const uint64_t rows = call->args->nq;
    double *weights = call->scratch;

    lh_decay_queries(call->args, weights, rows);
    *s = (LhStateSum){ .args = call->args,
                       .x = lh_rows_q(call, 0),
                       .y = lh_rows_q(call, 1),
                       .rows = rows,
                       .state = (float *)(void *)call->operands[2].data,
                       .weights = weights,
                       .keep = call->args->first ? 0 : lh_decay_power(call->args, rows),
                       .scratch = (char *)call->scratch + lh_weights_scratch(rows) };
    return call->operands[2].parts == 1 && lh_parts_divide(call, 2, 0);
}

LH_CPU_RUNS(LhStateSum, lh_state_sum_reference, state_sum)

const LhCpuKernel lh_cpu_kernel_linear_dstate = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = scratch_bytes,
};
