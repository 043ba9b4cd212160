/* On a CPU; what it does says the row, kernels/merge.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

/* Whatever is -inf, or an empty target, has weight 0 and is not subtracted from. */
static LhFactors
weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
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

static enum lh_status
reference(const LhCall *call)
{
    return lh_rows_combine_reference(call, 0, 1, weigh);
}

static enum lh_status
cpu(const LhCall *call)
{
    return lh_rows_combine(call, 0, 1, weigh);
}

const LhCpuKernel lh_cpu_kernel_merge = {
    .reference = reference,
    .fast = cpu,
};
