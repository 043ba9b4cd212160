/* On a CPU; what it does says the row, kernels/copy_out.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

static LhFactors
weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_out = lh_rows_acc_stat(call, 0, 0), of_lse = lh_rows_stat(call, 2);
    const float lse = *lh_stat_at(&of_out, sequence, row, head);

    *lh_stat_at(&of_lse, sequence, row, head) = lse;
    return (LhFactors){ .source = lse == -INFINITY ? 0 : 1 };
}

static enum lh_status
reference(const LhCall *call)
{
    return lh_rows_combine_reference(call, 0, 1, weigh);
}

static enum lh_status
cpu(const LhCall *call)
{
    return lh_rows_combine(call, 0, 1, weigh);
}

const LhCpuKernel lh_cpu_kernel_copy_out = {
    .reference = reference,
    .fast = cpu,
};
