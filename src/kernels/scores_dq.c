/*
 * dq += ds k.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return ((a->first ? 1 : 2) * lh_q_elements(a) + lh_k_elements(a) + lh_score_elements(a)) *
           element_bytes;
}

const LhKernel lh_kernel_scores_dq = {
    .name = "scores_dq",
    .summary = "gradient of queries from that of written-out scores",
    .effect = LH_EFFECT_SCORES_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "dscores", LH_OPERAND_READ, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { "k", LH_OPERAND_READ, LH_TENSOR_K, LH_ELEMENT_ACTIVATION },
        { "dq", LH_OPERAND_UPDATE, LH_TENSOR_DQ, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = memory_bytes,
};
