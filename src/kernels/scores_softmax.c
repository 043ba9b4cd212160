/*
 * Softmax of complete rows of scores under the mask, which comes in here and hides nothing earlier.
 * What it hides gets probability 0. Includes the scale of the logits.
 */
#include "kernels/sizes.h"

/* A scale, a difference, a power, a sum and a quotient per score; a logarithm and a sum per row. */
static uint64_t
flops(const LhKernelArgs *a)
{
    return 5 * lh_score_elements(a) + 2 * lh_rows(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t each = a->traffic > 0 ? a->traffic : LH_FP32_BYTES + element_bytes;

    return lh_score_elements(a) * each + lh_rows(a) * LH_STAT_BYTES;
}

const LhKernel lh_kernel_scores_softmax = {
    .name = "scores_softmax",
    .summary = "softmax of complete rows of scores, with their lse",
    .effect = LH_EFFECT_SOFTMAX,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "scores", LH_OPERAND_READ, LH_TENSOR_SCORES, LH_ELEMENT_FP32 },
        { "probs", LH_OPERAND_WRITE, LH_TENSOR_PROBS, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
