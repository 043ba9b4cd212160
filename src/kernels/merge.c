/*
 * Merges two unnormalised accumulators (o, m, l) of the same rows: o = e^(m1-m) o1 + e^(m2-m) o2,
 * likewise l. With `first` the target is a copy of the source.
 */
#include "kernels/sizes.h"

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
};
