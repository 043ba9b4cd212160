/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/merge.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

/*
 * Defines NAME_reference() and NAME_cpu(): operand 0 is added to operand TARGET with the factors of
 * NAME_weigh().
 */
#define COMBINES(NAME, TARGET)                                                                     \
    static enum lh_status NAME##_reference(const LhCall *call)                                     \
    {                                                                                              \
        return lh_rows_combine_reference(call, 0, TARGET, NAME##_weigh);                           \
    }                                                                                              \
                                                                                                   \
    static enum lh_status NAME##_cpu(const LhCall *call)                                           \
    {                                                                                              \
        return lh_rows_combine(call, 0, TARGET, NAME##_weigh);                                     \
    }

/* ---- merge ---- */

/* A source with m = -inf and an empty target have weight 0; -inf - -inf is never computed. */
static LhFactors
merge_weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows ms = lh_rows_acc_stat(call, 0, 0), ls = lh_rows_acc_stat(call, 0, 1);
    const LhRows mt = lh_rows_acc_stat(call, 1, 0), lt = lh_rows_acc_stat(call, 1, 1);
    float *m_target = lh_stat_at(&mt, sequence, row, head);
    float *l_target = lh_stat_at(&lt, sequence, row, head);
    const float m_source = *lh_stat_at(&ms, sequence, row, head);
    const float l_source = *lh_stat_at(&ls, sequence, row, head);
    const float before = call->args->first ? -INFINITY : *m_target;
    const float m = fmaxf(before, m_source);
    LhFactors by = { 0 };

    if (before != -INFINITY)
        by.target = exp((double)before - (double)m);
    if (m_source != -INFINITY)
        by.source = exp((double)m_source - (double)m);
    *l_target = (float)((by.target != 0 ? by.target * (double)*l_target : 0) +
                        (by.source != 0 ? by.source * (double)l_source : 0));
    *m_target = m;
    return by;
}

COMBINES(merge, 1)

const LhCpuKernel lh_cpu_kernel_merge = {
    .reference = merge_reference,
    .fast = merge_cpu,
};

/* ---- merge_lse ---- */

/* A block without keys (lse -inf) changes nothing; an empty target is replaced. */
static LhFactors
merge_lse_weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_block = lh_rows_acc_stat(call, 0, 0), of_out = lh_rows_acc_stat(call, 1, 0);
    const double block = (double)*lh_stat_at(&of_block, sequence, row, head);
    float *lse = lh_stat_at(&of_out, sequence, row, head);
    const double out = call->args->first ? -INFINITY : (double)*lse;
    double smaller;

    if (block == -INFINITY) {
        *lse = (float)out;
        return (LhFactors){ .target = out == -INFINITY ? 0 : 1 };
    }
    if (out == -INFINITY) {
        *lse = (float)block;
        return (LhFactors){ .source = 1 };
    }
    smaller = exp(-fabs(block - out));
    *lse = (float)(fmax(block, out) + log1p(smaller));
    /* Sigmoids of the difference and of its negative; they sum to 1. */
    if (block > out)
        return (LhFactors){ .target = smaller / (1 + smaller), .source = 1 / (1 + smaller) };
    return (LhFactors){ .target = 1 / (1 + smaller), .source = smaller / (1 + smaller) };
}

COMBINES(merge_lse, 1)

const LhCpuKernel lh_cpu_kernel_merge_lse = {
    .reference = merge_lse_reference,
    .fast = merge_lse_cpu,
};

/* ---- merge_stat ---- */

static float
log_add(double a, double b)
{
    const double larger = fmax(a, b);

    return larger == -INFINITY ? -INFINITY : (float)(larger + log1p(exp(-fabs(a - b))));
}

static enum lh_status
merge_stat_run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const LhRows of_block = lh_rows_acc_stat(call, 0, 0), of_lse = lh_rows_stat(call, 1);

    if (!lh_parts_divide(call, 2, 0))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t b = 0; b < a->batch; b++) {
        for (uint64_t row = 0; row < a->nq; row++) {
            for (uint32_t head = 0; head < a->heads; head++) {
                const float block = *lh_stat_at(&of_block, b, row, head);
                float *lse = lh_stat_at(&of_lse, b, row, head);

                *lse = a->first ? block : log_add((double)*lse, (double)block);
            }
        }
    }
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_merge_stat = {
    .reference = merge_stat_run,
    .fast = merge_stat_run,
};

/* ---- weigh_out ---- */

/* A block without keys (lse -inf) has weight 0. */
static LhFactors
weigh_out_weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_block = lh_rows_acc_stat(call, 0, 0), of_lse = lh_rows_stat(call, 1);
    const double block = (double)*lh_stat_at(&of_block, sequence, row, head);
    const double lse = (double)*lh_stat_at(&of_lse, sequence, row, head);

    return (LhFactors){ .target = call->args->first ? 0 : 1,
                        .source = block == -INFINITY ? 0 : exp(block - lse) };
}

COMBINES(weigh_out, 2)

const LhCpuKernel lh_cpu_kernel_weigh_out = {
    .reference = weigh_out_reference,
    .fast = weigh_out_cpu,
};

/* ---- normalise ---- */

/* Rows without a key become o = 0, lse = -inf. */
static LhFactors
normalise_weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_m = lh_rows_acc_stat(call, 0, 0), of_l = lh_rows_acc_stat(call, 0, 1);
    const LhRows of_lse = lh_rows_stat(call, 2);
    const double m = (double)*lh_stat_at(&of_m, sequence, row, head);
    const double l = (double)*lh_stat_at(&of_l, sequence, row, head);

    *lh_stat_at(&of_lse, sequence, row, head) = l > 0 ? (float)(m + log(l)) : -INFINITY;
    return (LhFactors){ .source = l > 0 ? 1 / l : 0 };
}

COMBINES(normalise, 1)

const LhCpuKernel lh_cpu_kernel_normalise = {
    .reference = normalise_reference,
    .fast = normalise_cpu,
};

/* ---- round_out ---- */

static LhFactors
round_out_weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_out = lh_rows_acc_stat(call, 0, 0), of_lse = lh_rows_stat(call, 2);
    const float lse = *lh_stat_at(&of_out, sequence, row, head);

    *lh_stat_at(&of_lse, sequence, row, head) = lse;
    return (LhFactors){ .source = lse == -INFINITY ? 0 : 1 };
}

COMBINES(round_out, 1)

const LhCpuKernel lh_cpu_kernel_round_out = {
    .reference = round_out_reference,
    .fast = round_out_cpu,
};

/* ---- copy_out ---- */

const LhCpuKernel lh_cpu_kernel_copy_out = {
    .reference = round_out_reference,
    .fast = round_out_cpu,
};
