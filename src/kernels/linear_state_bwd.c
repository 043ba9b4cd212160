/*
 * Backward of linear_state in k and v, given the gradient of the state behind the tokens.
 */
#include "kernels/sizes.h"

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
    .linear = true,
};
