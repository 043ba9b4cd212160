/* On a CPU; what it does says the row, kernels/scores_softmax_bwd.c. */
#include "kernels/cpu/attention_run.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/scores_run.h"

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
    const double scale = lh_attention_scale(a->scale, a->head_dim);
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

const LhCpuKernel lh_cpu_kernel_scores_softmax_bwd = {
    .reference = run,
    .fast = run,
    .scratch_bytes = scratch_bytes,
};
