/*
 * One block of attention, backward, given the global lse and delta = rowsum(do * o): recomputes the
 * probabilities and adds to dq, dk, dv. `first` overwrites all three. Traffic counts every operand
 * once.
 */
#include "kernels/sizes.h"

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (2 * lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t stats = 2 * lh_rows(a) * LH_STAT_BYTES;
    const uint64_t gradients = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;

    return inputs + stats + (a->first ? 1 : 2) * gradients;
}

const LhKernel lh_kernel_attention_bwd = {
    .name = "attention_bwd",
    .summary = "attention of one block, backward; takes delta",
    .effect = LH_EFFECT_ATTEND_GRAD,
    .cost = LH_COST_ATTENTION,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "delta", LH_OPERAND_READ, LH_TENSOR_DELTA, LH_ELEMENT_FP32 },
        { "lse", LH_OPERAND_READ, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "dq", LH_OPERAND_UPDATE, LH_TENSOR_DQ, LH_ELEMENT_EITHER },
        { "dkv", LH_OPERAND_UPDATE, LH_TENSOR_DKV, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_pair_flops_backward,
    .memory_bytes = memory_bytes,
};
