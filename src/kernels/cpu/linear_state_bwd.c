/* On a CPU; what it does says the row, kernels/linear_state_bwd.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return lh_weights_scratch(a->nk) + lh_state_scratch(a);
}

/* dk_i += decay^(n-1-i) v_i dstate^T, dv_i += decay^(n-1-i) k_i dstate. */
static bool
prepare(const LhCall *call, LhStateApply *dk, LhStateApply *dv)
{
    const uint64_t rows = call->args->nk;
    double *weights = call->scratch;

    lh_decay_keys(call->args, weights, rows);
    *dk = (LhStateApply){ .args = call->args,
                          .in = lh_rows_v(call, 0),
                          .out = lh_rows_k(call, 2),
                          .rows = rows,
                          .state = (const float *)(const void *)call->operands[1].data,
                          .weights = weights,
                          .transpose = true,
                          .load = !call->args->first,
                          .scratch = (char *)call->scratch + lh_weights_scratch(rows) };
    *dv = *dk;
    dv->in = lh_rows_k(call, 0);
    dv->out = lh_rows_v(call, 2);
    dv->transpose = false;
    return call->operands[1].parts == 1 && lh_parts_divide(call, 3, 1 << 0 | 1 << 1 | 1 << 2);
}

static enum lh_status
reference(const LhCall *call)
{
    LhStateApply dk, dv;

    if (!prepare(call, &dk, &dv))
        return LH_STATUS_UNSUPPORTED;
    lh_state_apply_reference(&dk);
    lh_state_apply_reference(&dv);
    return LH_STATUS_OK;
}

static enum lh_status
cpu(const LhCall *call)
{
    LhStateApply dk, dv;

    if (!prepare(call, &dk, &dv))
        return LH_STATUS_UNSUPPORTED;
    lh_cpu()->state_apply(&dk);
    lh_cpu()->state_apply(&dv);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_linear_state_bwd = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = scratch_bytes,
};
