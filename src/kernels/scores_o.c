/*
 * o += p v, of probabilities that are written out and values.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return ((a->first ? 1 : 2) * lh_q_elements(a) + lh_k_elements(a) + lh_score_elements(a)) *
           element_bytes;
}

const LhKernel lh_kernel_scores_o = {
    .name = "scores_o",
    .summary = "output of attention from written-out probabilities",
    .effect = LH_EFFECT_SCORES_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "probs", LH_OPERAND_READ, LH_TENSOR_PROBS, LH_ELEMENT_ACTIVATION },
        { "v", LH_OPERAND_READ, LH_TENSOR_V, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_UPDATE, LH_TENSOR_O, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = memory_bytes,
};
