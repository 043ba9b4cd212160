/* On a CPU; what it does says the row, kernels/scores_softmax.c. */
#include "kernels/cpu/attention_run.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/scores_run.h"

#include <math.h>

/* Turns scores into probabilities and returns the row's lse. @lse and @keys are as the rows of
 * queries and keys lie. */
static double
soften(const LhKernelArgs *a, const LhRows *lse, const LhRows *keys, uint64_t i, double *row)
{
    const double scale = lh_attention_scale(a->scale, a->head_dim);
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

const LhCpuKernel lh_cpu_kernel_scores_softmax = {
    .reference = run,
    .fast = run,
    .scratch_bytes = lh_scores_row_scratch,
};
