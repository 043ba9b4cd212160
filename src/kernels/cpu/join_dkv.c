/* On a CPU; what it does says the row, kernels/join_dkv.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

static enum lh_status
run(const LhCall *call)
{
    if (!lh_parts_divide(call, 3, 1 << 0 | 1 << 1 | 1 << 2))
        return LH_STATUS_UNSUPPORTED;
    lh_keys_copy(call, lh_rows_k(call, 0), lh_rows_k(call, 2));
    lh_keys_copy(call, lh_rows_k(call, 1), lh_rows_v(call, 2));
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_join_dkv = {
    .reference = run,
    .fast = run,
};
