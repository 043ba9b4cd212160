/*
 * Merges the normalised output of a block (o, lse) into fp32 (out, lse), as ring-flash-attention
 * does: out -= sigmoid(lse_block - lse) (out - o); lse -= log sigmoid(lse - lse_block). With
 * `first` it only stores. Out may be a block itself, of the activation's type; it is priced alike.
 * Traffic is that of the public code, one PyTorch kernel per operation: cast of o, difference,
 * product, difference.
 */
#include "kernels/sizes.h"

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

const LhKernel lh_kernel_merge_lse = {
    .name = "merge_lse",
    .summary = "adds a normalised attention block (o, lse) to fp32 (out, lse)",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "block", LH_OPERAND_READ, LH_TENSOR_OUT, LH_ELEMENT_ACTIVATION },
        { "out", LH_OPERAND_UPDATE, LH_TENSOR_OUT, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
