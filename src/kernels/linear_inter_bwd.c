/*
 * Backward of linear_inter in q: dq_i += decay^(i+1) do_i state^T. What the state's gradient gets
 * is linear_dstate's.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a) * a->head_dim;
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return state + (a->first ? 2 : 3) * lh_q_elements(a) * element_bytes;
}

const LhKernel lh_kernel_linear_inter_bwd = {
    .name = "linear_inter_bwd",
    .summary = "gradient of q through the state of all earlier tokens",
    .effect = LH_EFFECT_STATE_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "state", LH_OPERAND_READ, LH_TENSOR_STATE, LH_ELEMENT_FP32 },
        { "dq", LH_OPERAND_UPDATE, LH_TENSOR_DQ, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .linear = true,
};
