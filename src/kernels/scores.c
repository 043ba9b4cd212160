/*
 * Scores of query rows with keys, q k^T, without scale and mask: every one is computed. In fp32,
 * since rounded ones would shift the log-sum-exp by more than its other errors.
 */
#include "kernels/scores_run.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (lh_q_elements(a) + lh_k_elements(a)) * element_bytes +
           lh_score_elements(a) * LH_FP32_BYTES;
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
    .reference = reference,
    .cpu = cpu,
    .scratch_bytes = lh_scores_scratch,
};
