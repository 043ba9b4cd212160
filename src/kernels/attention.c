/*
 * Attention of queries that meet all their keys in one call, as a library's kernel computes it:
 * writes the normalised o and the lse themselves, so that nothing is merged or normalised after it.
 * Traffic as attention_block.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t outputs = lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;

    return inputs + outputs;
}

const LhKernel lh_kernel_attention = {
    .name = "attention",
    .summary = "complete attention of queries with all their keys, forward",
    .effect = LH_EFFECT_ATTEND,
    .cost = LH_COST_ATTENTION,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_WRITE, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_pair_flops_forward,
    .memory_bytes = memory_bytes,
};
