/*
 * Backward of linear_state in k and v, given the gradient of the state behind the tokens.
 */
#include "kernels/cpu.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    /* Two products of 2 d flops per key element of every query head. */
    return 4 * (uint64_t)a->batch * a->nk * a->heads * a->head_dim * a->head_dim;
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return state + (a->first ? 2 : 3) * lh_kv_elements(a) * element_bytes;
}

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

const LhKernel lh_kernel_linear_state_bwd = {
    .name = "linear_state_bwd",
    .summary = "gradients of k and v through the state behind them",
    .effect = LH_EFFECT_STATE_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "dstate", LH_OPERAND_READ, LH_TENSOR_DSTATE, LH_ELEMENT_FP32 },
        { "dkv", LH_OPERAND_UPDATE, LH_TENSOR_DKV, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
    .scratch_bytes = scratch_bytes,
    .linear = true,
};
