/* On a CPU; what it does says the row, kernels/expand_kv.c. */
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/rows.h"

#include <string.h>

static void
expand(const LhCall *call, const LhRows *from, const LhRows *to)
{
    const LhKernelArgs *a = call->args;
    const size_t bytes = (size_t)a->head_dim * lh_storage_bytes(to->storage);

    for (uint64_t row = 0; row < a->batch * a->nk * a->heads; row++) {
        const uint64_t b = row / a->heads / a->nk, j = row / a->heads % a->nk;
        const uint32_t head = (uint32_t)(row % a->heads);

        memcpy(lh_rows_at(to, b, j, head), lh_rows_at(from, b, j, head / (a->heads / a->groups)),
               bytes);
    }
}

static enum lh_status
run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    LhRows k, v, to;

    if (!lh_parts_divide(call, 2, 1 << 0 | 1 << 1) || a->heads % a->groups != 0)
        return LH_STATUS_UNSUPPORTED;
    k = lh_rows_k(call, 0);
    v = lh_rows_v(call, 0);
    to = lh_rows_of(call, 1, a->nk, a->heads, a->head_dim);
    if (to.part_bytes < 2 * lh_rows_bytes(&to, a->batch))
        return LH_STATUS_UNSUPPORTED;
    expand(call, &k, &to);
    to.data += lh_rows_bytes(&to, a->batch);
    expand(call, &v, &to);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_expand_kv = {
    .reference = run,
    .fast = run,
};
