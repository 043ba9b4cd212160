/* On a CPU; what it does says the row, kernels/linear_inter.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return lh_weights_scratch(a->nq) + lh_state_scratch(a);
}

static bool
prepare(const LhCall *call, LhStateApply *s)
{
    const uint64_t rows = call->args->nq;
    double *weights = call->scratch;

    lh_decay_queries(call->args, weights, rows);
    *s = (LhStateApply){ .args = call->args,
                         .in = lh_rows_q(call, 0),
                         .out = lh_rows_q(call, 2),
                         .rows = rows,
                         .state = (const float *)(const void *)call->operands[1].data,
                         .weights = weights,
                         .load = !call->args->first,
                         .scratch = (char *)call->scratch + lh_weights_scratch(rows) };
    return call->operands[1].parts == 1 && lh_parts_divide(call, 3, 0);
}

LH_CPU_RUNS(LhStateApply, lh_state_apply_reference, state_apply)

const LhCpuKernel lh_cpu_kernel_linear_inter = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = scratch_bytes,
};
