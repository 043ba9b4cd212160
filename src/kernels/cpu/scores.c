/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/scores.c. */
#include "kernels/cpu/attention_run.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/scores_run.h"

#include <math.h>

/* Runs a product with the operands @scores, @by_query and @by_key. */
static enum lh_status
multiply(const LhCall *call, unsigned scores, unsigned by_query, unsigned by_key,
         void (*product)(const LhScoresProduct *p))
{
    LhScoresProduct p;

    if (!lh_scores_prepare(call, scores, by_query, by_key, &p))
        return LH_STATUS_UNSUPPORTED;
    product(&p);
    return LH_STATUS_OK;
}

/* ---- scores ---- */

static enum lh_status
scores_reference(const LhCall *call)
{
    return multiply(call, 2, 0, 1, lh_scores_reference);
}

static enum lh_status
scores_cpu(const LhCall *call)
{
    return multiply(call, 2, 0, 1, lh_scores_fast);
}

const LhCpuKernel lh_cpu_kernel_scores = {
    .reference = scores_reference,
    .fast = scores_cpu,
    .scratch_bytes = lh_scores_scratch,
};

/* ---- scores_softmax ---- */

/*
 * Turns scores into probabilities and returns the row's lse. @lse and @keys give the layout of the
 * query and key rows.
 */
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

/* Reference and fast version: in fp64, bound by memory. */
static enum lh_status
scores_softmax_run(const LhCall *call)
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
    .reference = scores_softmax_run,
    .fast = scores_softmax_run,
    .scratch_bytes = lh_scores_row_scratch,
};

/* ---- scores_o ---- */

static enum lh_status
scores_o_reference(const LhCall *call)
{
    return multiply(call, 0, 2, 1, lh_scores_apply_reference);
}

static enum lh_status
scores_o_cpu(const LhCall *call)
{
    return multiply(call, 0, 2, 1, lh_scores_apply_fast);
}

const LhCpuKernel lh_cpu_kernel_scores_o = {
    .reference = scores_o_reference,
    .fast = scores_o_cpu,
    .scratch_bytes = lh_scores_scratch,
};

/* ---- scores_dv ---- */

static enum lh_status
scores_dv_reference(const LhCall *call)
{
    return multiply(call, 0, 1, 2, lh_scores_transposed_reference);
}

static enum lh_status
scores_dv_cpu(const LhCall *call)
{
    return multiply(call, 0, 1, 2, lh_scores_transposed_fast);
}

const LhCpuKernel lh_cpu_kernel_scores_dv = {
    .reference = scores_dv_reference,
    .fast = scores_dv_cpu,
    .scratch_bytes = lh_scores_scratch,
};

/* ---- scores_dp ---- */

const LhCpuKernel lh_cpu_kernel_scores_dp = {
    .reference = scores_reference,
    .fast = scores_cpu,
    .scratch_bytes = lh_scores_scratch,
};

/* ---- scores_softmax_bwd ---- */

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return 2 * lh_scores_row_scratch(a);
}

/* Reference and fast version: in fp64, bound by memory. */
static enum lh_status
scores_softmax_bwd_run(const LhCall *call)
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
    .reference = scores_softmax_bwd_run,
    .fast = scores_softmax_bwd_run,
    .scratch_bytes = scratch_bytes,
};

/* ---- scores_dq ---- */

const LhCpuKernel lh_cpu_kernel_scores_dq = {
    .reference = scores_o_reference,
    .fast = scores_o_cpu,
    .scratch_bytes = lh_scores_scratch,
};

/* ---- scores_dk ---- */

const LhCpuKernel lh_cpu_kernel_scores_dk = {
    .reference = scores_dv_reference,
    .fast = scores_dv_cpu,
    .scratch_bytes = lh_scores_scratch,
};
