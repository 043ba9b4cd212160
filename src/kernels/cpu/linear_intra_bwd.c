/* On a CPU; what it does says the row, kernels/linear_intra_bwd.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "kernels/sizes.h"

#include <stddef.h>

static bool
prepare(const LhCall *call, LhBackward *b)
{
    const uint64_t table_bytes = lh_weights_scratch(call->args->nq);
    void *rest = (char *)call->scratch + table_bytes;

    *b = (LhBackward){ .args = call->args,
                       .q = lh_rows_q(call, 0),
                       .dout = lh_rows_q(call, 1),
                       .k = lh_rows_k(call, 2),
                       .v = lh_rows_v(call, 2),
                       .dq = lh_rows_q(call, 3),
                       .dk = lh_rows_k(call, 4),
                       .dv = lh_rows_v(call, 4),
                       .load = !call->args->first,
                       .linear = true,
                       .decay = lh_decay_table(call->args, call->scratch),
                       .scratch = rest };
    return (b->decay == NULL || call->args->mask == LH_MASK_CAUSAL ||
            call->args->mask == LH_MASK_EMPTY) &&
           lh_parts_divide(call, 5, 1 << 2 | 1 << 4);
}

static enum lh_status
reference(const LhCall *call)
{
    LhBackward b;

    if (!prepare(call, &b))
        return LH_STATUS_UNSUPPORTED;
    lh_attention_backward_reference(&b);
    return LH_STATUS_OK;
}

static enum lh_status
cpu(const LhCall *call)
{
    LhBackward b;

    if (!prepare(call, &b))
        return LH_STATUS_UNSUPPORTED;
    if (lh_linear_tiles(call->args).count > 1)
        lh_linear_backward_tiles(&b);
    else
        lh_cpu()->backward(&b);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_linear_intra_bwd = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = lh_linear_backward_scratch,
};
