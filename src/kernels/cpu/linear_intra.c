/* On a CPU; what it does says the row, kernels/linear_intra.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "kernels/sizes.h"

#include <stddef.h>

static bool
prepare(const LhCall *call, LhForward *f)
{
    const uint64_t table_bytes = lh_weights_scratch(call->args->nq);
    void *rest = (char *)call->scratch + table_bytes;

    *f = (LhForward){ .args = call->args,
                      .q = lh_rows_q(call, 0),
                      .k = lh_rows_k(call, 1),
                      .v = lh_rows_v(call, 1),
                      .o = lh_rows_q(call, 2),
                      .load = !call->args->first,
                      .linear = true,
                      .decay = lh_decay_table(call->args, call->scratch),
                      .scratch = rest };
    return (f->decay == NULL || call->args->mask == LH_MASK_CAUSAL ||
            call->args->mask == LH_MASK_EMPTY) &&
           lh_parts_divide(call, 3, 1 << 1);
}

static enum lh_status
reference(const LhCall *call)
{
    LhForward f;

    if (!prepare(call, &f))
        return LH_STATUS_UNSUPPORTED;
    lh_attention_forward_reference(&f);
    return LH_STATUS_OK;
}

static enum lh_status
cpu(const LhCall *call)
{
    LhForward f;

    if (!prepare(call, &f))
        return LH_STATUS_UNSUPPORTED;
    if (lh_linear_tiles(call->args).count > 1)
        lh_linear_forward_tiles(&f);
    else
        lh_cpu()->forward(&f);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_linear_intra = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = lh_linear_forward_scratch,
};
