/*
 * Gradient of scores through softmax, of complete rows: ds = scale p (dp - sum of p dp). May work
 * in place, ds in dp. The mask is in the probabilities, which are 0 where it hides.
 */
#include "kernels/sizes.h"

/* Two for the row's sum, a difference and two products per score. */
static uint64_t
flops(const LhKernelArgs *a)
{
    return 5 * lh_score_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_score_elements(a) * (a->traffic > 0 ? a->traffic : 3 * element_bytes);
}

const LhKernel lh_kernel_scores_softmax_bwd = {
    .name = "scores_softmax_bwd",
    .summary = "gradient of scores through softmax, of complete rows",
    .effect = LH_EFFECT_SOFTMAX_GRAD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "probs", LH_OPERAND_READ, LH_TENSOR_PROBS, LH_ELEMENT_ACTIVATION },
        { "dp", LH_OPERAND_READ, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { "ds", LH_OPERAND_WRITE, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
