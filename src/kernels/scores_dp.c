/*
 * Gradient of the probabilities of query rows, do v^T, under no mask.
 */
#include "kernels/scores_run.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (lh_q_elements(a) + lh_k_elements(a) + lh_score_elements(a)) * element_bytes;
}

static enum lh_status
run(const LhCall *call, void (*product)(const LhScoresProduct *p))
{
    LhScoresProduct p;

    if (!lh_scores_prepare(call, 2, 0, 1, &p))
        return LH_STATUS_UNSUPPORTED;
    product(&p);
    return LH_STATUS_OK;
}

static enum lh_status
reference(const LhCall *call)
{
    return run(call, lh_scores_reference);
}

static enum lh_status
cpu(const LhCall *call)
{
    return run(call, lh_scores_fast);
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
    .reference = reference,
    .cpu = cpu,
    .scratch_bytes = lh_scores_scratch,
};
