/*
 * Scores of query rows with keys, q k^T, without scale and mask: every one is computed. In fp32,
 * since rounded ones would shift the log-sum-exp by more than its other errors.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (lh_q_elements(a) + lh_k_elements(a)) * element_bytes +
           lh_score_elements(a) * LH_FP32_BYTES;
}

const LhKernel lh_kernel_scores = {
    .name = "scores",
    .summary = "scores of queries with keys, written out",
    .effect = LH_EFFECT_SCORES,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "k", LH_OPERAND_READ, LH_TENSOR_K, LH_ELEMENT_ACTIVATION },
        { "scores", LH_OPERAND_WRITE, LH_TENSOR_SCORES, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = memory_bytes,
};
