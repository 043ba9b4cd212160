/*
 * Softmax of complete rows of scores under the mask, which comes in here and hides nothing earlier.
 * What it hides gets probability 0. Includes the scale of the logits.
 */
#include "kernels/attention_run.h"
#include "kernels/scores_run.h"
#include "kernels/sizes.h"

#include <math.h>
#include <stddef.h>

/* A scale, a difference, a power, a sum and a quotient per score; a logarithm and a sum per row. */
static uint64_t
flops(const LhKernelArgs *a)
{
    return 5 * lh_score_elements(a) + 2 * lh_rows(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_score_elements(a) * (LH_FP32_BYTES + element_bytes) + lh_rows(a) * LH_STAT_BYTES;
}

/* Turns scores into probabilities and returns the row's lse. @lse and @keys are as the rows of
 * queries and keys lie. */
static double
soften(const LhKernelArgs *a, const LhRows *lse, const LhRows *keys, uint64_t i, double *row)
{
    const double scale = lh_attention_scale(a);
    double most = -INFINITY, sum = 0;

    for (uint64_t j = 0; j < a->nk; j++) {
        row[j] = lh_mask_allows(a, lse, keys, i, j) ? row[j] * scale : -INFINITY;
        most = fmax(most, row[j]);
    }
    for (uint64_t j = 0; j < a->nk; j++) {
        row[j] = row[j] == -INFINITY ? 0 : exp(row[j] - most);
        sum += row[j];
    }
    for (uint64_t j = 0; j < a->nk && sum > 0; j++)
        row[j] /= sum;
    return sum > 0 ? most + log(sum) : -INFINITY;
}

/* In fp64 and bound by memory: reference and fast version. */
static enum lh_status
run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const LhScores scores = lh_scores_of(call, 0), probs = lh_scores_of(call, 1);
    const LhRows lse = lh_rows_stat(call, 2);
    const LhRows keys = { .part_rows = scores.rows.dim };
    double *row = call->scratch;

    if (!lh_parts_divide(call, 3, 1 << 0 | 1 << 1))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t b = 0; b < a->batch; b++) {
        for (uint64_t i = 0; i < a->nq; i++) {
            for (uint32_t head = 0; head < a->heads; head++) {
                lh_scores_load(&scores, row, b, i, head);
                *lh_stat_at(&lse, b, i, head) = (float)soften(a, &lse, &keys, i, row);
                lh_scores_store(&probs, row, b, i, head);
            }
        }
    }
    return LH_STATUS_OK;
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
    .reference = run,
    .cpu = run,
    .scratch_bytes = lh_scores_row_scratch,
};
