/* On a CPU; what it does says the row, kernels/take_k.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

static enum lh_status
run(const LhCall *call)
{
    if (!lh_parts_divide(call, 2, 1 << 0 | 1 << 1))
        return LH_STATUS_UNSUPPORTED;
    lh_keys_copy(call, lh_rows_k(call, 0), lh_rows_k(call, 1));
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_take_k = {
    .reference = run,
    .fast = run,
};
