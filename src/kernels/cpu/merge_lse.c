/* On a CPU; what it does says the row, kernels/merge_lse.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

/* A block without keys (lse -inf) changes nothing; an empty target is replaced. */
static LhFactors
weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_block = lh_rows_acc_stat(call, 0, 0), of_out = lh_rows_acc_stat(call, 1, 0);
    const double block = (double)*lh_stat_at(&of_block, sequence, row, head);
    float *lse = lh_stat_at(&of_out, sequence, row, head);
    const double out = call->args->first ? -INFINITY : (double)*lse;
    double smaller;

    if (block == -INFINITY) {
        *lse = (float)out;
        return (LhFactors){ .target = out == -INFINITY ? 0 : 1 };
    }
    if (out == -INFINITY) {
        *lse = (float)block;
        return (LhFactors){ .source = 1 };
    }
    smaller = exp(-fabs(block - out));
    *lse = (float)(fmax(block, out) + log1p(smaller));
    /* Sigmoids of the difference and of its opposite, which add up to 1. */
    if (block > out)
        return (LhFactors){ .target = smaller / (1 + smaller), .source = 1 / (1 + smaller) };
    return (LhFactors){ .target = 1 / (1 + smaller), .source = smaller / (1 + smaller) };
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

const LhCpuKernel lh_cpu_kernel_merge_lse = {
    .reference = reference,
    .fast = cpu,
};
