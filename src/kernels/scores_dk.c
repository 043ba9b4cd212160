/*
 * dk = ds^T q: what the query rows add to the gradients of the keys, for all keys of the call.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (lh_q_elements(a) + lh_k_elements(a) + lh_score_elements(a)) * element_bytes;
}

const LhKernel lh_kernel_scores_dk = {
    .name = "scores_dk",
    .summary = "gradient of keys from that of written-out scores",
    .effect = LH_EFFECT_SCORES_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "dscores", LH_OPERAND_READ, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "dk", LH_OPERAND_WRITE, LH_TENSOR_DK, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = memory_bytes,
};
