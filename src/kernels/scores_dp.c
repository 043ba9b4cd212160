/*
 * Gradient of the probabilities of query rows, do v^T, under no mask.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (lh_q_elements(a) + lh_k_elements(a) + lh_score_elements(a)) * element_bytes;
}

const LhKernel lh_kernel_scores_dp = {
    .name = "scores_dp",
    .summary = "gradient of written-out probabilities",
    .effect = LH_EFFECT_SCORES,
    .cost = LH_COST_GEMM,
    .operands = {
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "v", LH_OPERAND_READ, LH_TENSOR_V, LH_ELEMENT_ACTIVATION },
        { "dscores", LH_OPERAND_WRITE, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = memory_bytes,
};
