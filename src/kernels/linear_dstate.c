/*
 * The gradient of the state before the tokens of a call: dstate = decay^n dstate + sum of
 * decay^(i+1) q_i^T do_i. With `first` it is the tokens' own, to which linear_carry adds what comes
 * from behind.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a) * a->head_dim + (a->first ? 0 : 2 * lh_state_elements(a));
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return (a->first ? 1 : 2) * state + 2 * lh_q_elements(a) * element_bytes;
}

const LhKernel lh_kernel_linear_dstate = {
    .name = "linear_dstate",
    .summary = "gradient of the state that a block of queries reads",
    .effect = LH_EFFECT_STATE_SUM,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "dstate", LH_OPERAND_UPDATE, LH_TENSOR_DSTATE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .linear = true,
};
