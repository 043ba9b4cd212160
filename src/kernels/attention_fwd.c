/*
 * One block of attention, forward: scores q k^T under the mask, online softmax, times v, added to
 * an unnormalised accumulator (o, m, l). With `first` the accumulator starts here. Traffic counts
 * every operand once; re-reads of k and v hit the L2.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t acc = lh_q_elements(a) * element_bytes + 2 * lh_rows(a) * LH_STAT_BYTES;

    return inputs + (a->first ? 1 : 2) * acc;
}

const LhKernel lh_kernel_attention_fwd = {
    .name = "attention_fwd",
    .summary = "attention of one query block with one key-value block, forward",
    .effect = LH_EFFECT_ATTEND,
    .cost = LH_COST_ATTENTION,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "acc", LH_OPERAND_UPDATE, LH_TENSOR_ACC, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_pair_flops_forward,
    .memory_bytes = memory_bytes,
};
