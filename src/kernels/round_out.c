/*
 * Ends an fp32 accumulator (out, lse) that is normalised already: rounds o to the activation's
 * type.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    (void)a;
    return 0;
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_q_elements(a) * (LH_FP32_BYTES + element_bytes) + 2 * lh_rows(a) * LH_STAT_BYTES;
}

const LhKernel lh_kernel_round_out = {
    .name = "round_out",
    .summary = "rounds fp32 (out, lse) to o and lse",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "out", LH_OPERAND_READ, LH_TENSOR_OUT, LH_ELEMENT_FP32 },
        { "o", LH_OPERAND_WRITE, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
};
