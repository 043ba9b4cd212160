/* On a CPU; what it does says the row, kernels/normalise.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

/* Rows without a key become o = 0, lse = -inf. */
static LhFactors
weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_m = lh_rows_acc_stat(call, 0, 0), of_l = lh_rows_acc_stat(call, 0, 1);
    const LhRows of_lse = lh_rows_stat(call, 2);
    const double m = (double)*lh_stat_at(&of_m, sequence, row, head);
    const double l = (double)*lh_stat_at(&of_l, sequence, row, head);

    *lh_stat_at(&of_lse, sequence, row, head) = l > 0 ? (float)(m + log(l)) : -INFINITY;
    return (LhFactors){ .source = l > 0 ? 1 / l : 0 };
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

const LhCpuKernel lh_cpu_kernel_normalise = {
    .reference = reference,
    .fast = cpu,
};
