/* On a CPU; what it does says the row, kernels/merge_stat.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

static float
log_add(double a, double b)
{
    const double larger = fmax(a, b);

    return larger == -INFINITY ? -INFINITY : (float)(larger + log1p(exp(-fabs(a - b))));
}

static enum lh_status
run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const LhRows of_block = lh_rows_acc_stat(call, 0, 0), of_lse = lh_rows_stat(call, 1);

    if (!lh_parts_divide(call, 2, 0))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t b = 0; b < a->batch; b++) {
        for (uint64_t row = 0; row < a->nq; row++) {
            for (uint32_t head = 0; head < a->heads; head++) {
                const float block = *lh_stat_at(&of_block, b, row, head);
                float *lse = lh_stat_at(&of_lse, b, row, head);

                *lse = a->first ? block : log_add((double)*lse, (double)block);
            }
        }
    }
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_merge_stat = {
    .reference = run,
    .fast = run,
};
