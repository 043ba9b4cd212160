/* On a CPU; what it does says the row, kernels/weigh_out.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

/* A block without keys (lse -inf) has no weight. */
static LhFactors
weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_block = lh_rows_acc_stat(call, 0, 0), of_lse = lh_rows_stat(call, 1);
    const double block = (double)*lh_stat_at(&of_block, sequence, row, head);
    const double lse = (double)*lh_stat_at(&of_lse, sequence, row, head);

    return (LhFactors){ .target = call->args->first ? 0 : 1,
                        .source = block == -INFINITY ? 0 : exp(block - lse) };
}

static enum lh_status
reference(const LhCall *call)
{
    return lh_rows_combine_reference(call, 0, 2, weigh);
}

static enum lh_status
cpu(const LhCall *call)
{
    return lh_rows_combine(call, 0, 2, weigh);
}

const LhCpuKernel lh_cpu_kernel_weigh_out = {
    .reference = reference,
    .fast = cpu,
};
