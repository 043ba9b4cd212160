/*
 * One block of attention, forward, that stands alone: overwrites its block with a normalised o and
 * its lse, to be merged by merge_lse. Traffic as attention_fwd.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t block = lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;

    return inputs + block;
}

const LhKernel lh_kernel_attention_block = {
    .name = "attention_block",
    .summary = "attention of one block, forward, as a normalised o with its lse",
    .effect = LH_EFFECT_ATTEND,
    .cost = LH_COST_ATTENTION,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "block", LH_OPERAND_WRITE, LH_TENSOR_OUT, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_pair_flops_forward,
    .memory_bytes = memory_bytes,
};
