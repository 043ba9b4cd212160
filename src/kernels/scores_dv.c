/*
 * dv = p^T do: what the query rows add to the gradients of the values, for all keys of the call.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (lh_q_elements(a) + lh_k_elements(a) + lh_score_elements(a)) * element_bytes;
}

const LhKernel lh_kernel_scores_dv = {
    .name = "scores_dv",
    .summary = "gradient of values from written-out probabilities",
    .effect = LH_EFFECT_SCORES_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "probs", LH_OPERAND_READ, LH_TENSOR_PROBS, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "dv", LH_OPERAND_WRITE, LH_TENSOR_DV, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = memory_bytes,
};
