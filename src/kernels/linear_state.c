/*
 * The state behind the tokens of a call: state = decay^n state + sum of decay^(n-1-i) k_i^T v_i.
 * With `first` it is the tokens' own, to which linear_carry adds what comes from before.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    /* One product of 2 d flops per key element of every query head; the decay of the old state. */
    return 2 * (uint64_t)a->batch * a->nk * a->heads * a->head_dim * a->head_dim +
           (a->first ? 0 : 2 * lh_state_elements(a));
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return (a->first ? 1 : 2) * state + lh_kv_elements(a) * element_bytes;
}

const LhKernel lh_kernel_linear_state = {
    .name = "linear_state",
    .summary = "takes keys and values into the state of linear attention",
    .effect = LH_EFFECT_STATE_SUM,
    .cost = LH_COST_GEMM,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "state", LH_OPERAND_UPDATE, LH_TENSOR_STATE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .linear = true,
};
