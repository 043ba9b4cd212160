/*
 * Gradient of scores through softmax, of complete rows: ds = scale p (dp - sum of p dp). May work
 * in place, ds in dp. The mask is in the probabilities, which are 0 where it hides.
 */
#include "kernels/attention_run.h"
#include "kernels/scores_run.h"
#include "kernels/sizes.h"

#include <stddef.h>

/* Two for the row's sum, a difference and two products per score. */
static uint64_t
flops(const LhKernelArgs *a)
{
    return 5 * lh_score_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 3 * lh_score_elements(a) * element_bytes;
}

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return 2 * lh_scores_row_scratch(a);
}

/* In fp64 and bound by memory: reference and fast version. */
static enum lh_status
run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const LhScores probs = lh_scores_of(call, 0), dp = lh_scores_of(call, 1);
    const LhScores ds = lh_scores_of(call, 2);
    const double scale = lh_attention_scale(a);
    double *p = call->scratch, *row = p + a->nk;

    if (!lh_parts_divide(call, 3, 1 << 0 | 1 << 1 | 1 << 2))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t b = 0; b < a->batch; b++) {
        for (uint64_t i = 0; i < a->nq; i++) {
            for (uint32_t head = 0; head < a->heads; head++) {
                double sum = 0;

                lh_scores_load(&probs, p, b, i, head);
                lh_scores_load(&dp, row, b, i, head);
                for (uint64_t j = 0; j < a->nk; j++)
                    sum += p[j] * row[j];
                for (uint64_t j = 0; j < a->nk; j++)
                    row[j] = scale * p[j] * (row[j] - sum);
                lh_scores_store(&ds, row, b, i, head);
            }
        }
    }
    return LH_STATUS_OK;
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
    .reference = run,
    .cpu = run,
    .scratch_bytes = scratch_bytes,
};
