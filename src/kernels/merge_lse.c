/*
 * Merges the normalised output of a block (o, lse) into fp32 (out, lse), as ring-flash-attention
 * does: out -= sigmoid(lse_block - lse) (out - o); lse -= log sigmoid(lse - lse_block). With
 * `first` it only stores. Out may be a block itself, of the activation's type; it is priced alike.
 * Traffic is that of the public code, one PyTorch kernel per operation: cast of o, difference,
 * product, difference.
 */
#include "kernels/elementwise.h"
#include "kernels/sizes.h"

#include <math.h>
#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    /* Difference, product, difference per element; sigmoid (4) and log-sigmoid update (5) per row.
     */
    return a->first ? 0 : 3 * lh_q_elements(a) + 9 * lh_rows(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t elements = lh_q_elements(a);
    const uint64_t cast = element_bytes + LH_FP32_BYTES, unary = 2 * LH_FP32_BYTES,
                   binary = 3 * LH_FP32_BYTES;
    const uint64_t stats = 4 * lh_rows(a) * LH_STAT_BYTES;

    return elements * (a->first ? cast : cast + unary + 2 * binary) + stats;
}

/* A block without keys (lse -inf) changes nothing; an empty target is replaced. */
static LhFactors
weigh(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head)
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
    /* Sigmoids of the difference and of its opposite, which add up to 1. */
    if (block > out)
        return (LhFactors){ .target = smaller / (1 + smaller), .source = 1 / (1 + smaller) };
    return (LhFactors){ .target = 1 / (1 + smaller), .source = smaller / (1 + smaller) };
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

const LhKernel lh_kernel_merge_lse = {
    .name = "merge_lse",
    .summary = "adds a normalised attention block (o, lse) to fp32 (out, lse)",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "block", LH_OPERAND_READ, LH_TENSOR_ACC, LH_ELEMENT_ACTIVATION },
        { "out", LH_OPERAND_UPDATE, LH_TENSOR_ACC, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
};
