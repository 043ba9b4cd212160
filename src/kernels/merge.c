/*
 * Merges two unnormalised accumulators (o, m, l) of the same rows: o = e^(m1-m) o1 + e^(m2-m) o2,
 * likewise l. With `first` the target is a copy of the source.
 */
#include "kernels/elementwise.h"
#include "kernels/sizes.h"

#include <math.h>
#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    /* Two products and a sum per element; maximum, two differences, two powers, and l per row. */
    return a->first ? 0 : 3 * lh_q_elements(a) + 8 * lh_rows(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t stats = 2 * lh_rows(a) * LH_STAT_BYTES;
    const uint64_t source = lh_q_elements(a) * element_bytes + stats;
    const uint64_t acc = lh_q_elements(a) * LH_FP32_BYTES + stats;

    return source + (a->first ? 1 : 2) * acc;
}

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

const LhKernel lh_kernel_merge = {
    .name = "merge",
    .summary = "adds one attention accumulator (o, m, l) to another",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ACC, LH_ELEMENT_ACTIVATION },
        { "acc", LH_OPERAND_UPDATE, LH_TENSOR_ACC, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
};
