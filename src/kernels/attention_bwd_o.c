/*
 * As attention_bwd, but given o: every call first computes delta = rowsum(do * o) for its rows, as
 * the public implementations of flash attention do. That is memory traffic: reads do and o once
 * more, writes delta.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t delta = 2 * lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;
    const uint64_t inputs = (2 * lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t stats = 2 * lh_rows(a) * LH_STAT_BYTES;
    const uint64_t gradients = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;

    return delta + inputs + stats + (a->first ? 1 : 2) * gradients;
}

const LhKernel lh_kernel_attention_bwd_o = {
    .name = "attention_bwd_o",
    .summary = "attention of one block, backward; takes o and computes delta itself",
    .effect = LH_EFFECT_ATTEND_GRAD,
    .cost = LH_COST_ATTENTION,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_READ, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_READ, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "dq", LH_OPERAND_UPDATE, LH_TENSOR_DQ, LH_ELEMENT_EITHER },
        { "dkv", LH_OPERAND_UPDATE, LH_TENSOR_DKV, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_pair_flops_backward, /* delta is counted as traffic only */
    .memory_bytes = memory_bytes,
};
