/*
 * Ends an accumulator: o = acc / l, lse = m + log l. Systems that do this inside the last attention
 * call save its traffic.
 */
#include "kernels/elementwise.h"
#include "kernels/sizes.h"

#include <math.h>
#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    /* A quotient per element; logarithm and sum per row. */
    return lh_q_elements(a) + 2 * lh_rows(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_q_elements(a) * (LH_FP32_BYTES + element_bytes) + 3 * lh_rows(a) * LH_STAT_BYTES;
}

/* Rows without a key become o = 0, lse = -inf. */
static LhFactors
weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
{
    const LhRows of_m = lh_rows_acc_stat(call, 0, 0), of_l = lh_rows_acc_stat(call, 0, 1);
    const LhRows of_lse = lh_rows_stat(call, 2);
    const double m = (double)*lh_stat_at(&of_m, sequence, row, head);
    const double l = (double)*lh_stat_at(&of_l, sequence, row, head);

    *lh_stat_at(&of_lse, sequence, row, head) = l > 0 ? (float)(m + log(l)) : -INFINITY;
    return (LhFactors){ .source = l > 0 ? 1 / l : 0 };
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

const LhKernel lh_kernel_normalise = {
    .name = "normalise",
    .summary = "turns an attention accumulator (o, m, l) into o and lse",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "acc", LH_OPERAND_READ, LH_TENSOR_ACC, LH_ELEMENT_EITHER },
        { "o", LH_OPERAND_WRITE, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
};
