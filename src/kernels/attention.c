/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of a block of queries on a block of keys and values, its gradients, and delta.
 */
#include "kernels/sizes.h"

/* ---- attention ---- */

static uint64_t
attention_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t outputs = lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;

    return inputs + outputs;
}

/*
 * Attention of queries with all their keys in one call, as a library's kernel computes it. Writes
 * the normalised o and the lse; no merge or normalise follows. Traffic as attention_block.
 */
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
    .memory_bytes = attention_memory_bytes,
};

/* ---- attention_fwd ---- */

static uint64_t
attention_fwd_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t acc = lh_q_elements(a) * element_bytes + 2 * lh_rows(a) * LH_STAT_BYTES;

    return inputs + (a->first ? 1 : 2) * acc;
}

/*
 * One block of attention, forward: scores q k^T under the mask, online softmax, times v, added to
 * an unnormalised accumulator (o, m, l). With `first` the accumulator starts here. Traffic counts
 * every operand once; repeated reads of k and v hit the L2.
 */
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
    .memory_bytes = attention_fwd_memory_bytes,
};

/* ---- attention_block ---- */

static uint64_t
attention_block_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t block = lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;

    return inputs + block;
}

/*
 * One separate block of attention, forward: overwrites its block with a normalised o and its lse,
 * for merge_lse. Traffic as attention_fwd.
 */
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
    .memory_bytes = attention_block_memory_bytes,
};

/* ---- attention_bwd ---- */

static uint64_t
attention_bwd_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (2 * lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t stats = 2 * lh_rows(a) * LH_STAT_BYTES;
    const uint64_t gradients = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;

    return inputs + stats + (a->first ? 1 : 2) * gradients;
}

/*
 * One block of attention, backward, from the global lse and delta = rowsum(do * o): recomputes the
 * probabilities and adds to dq, dk, dv. `first` overwrites all three. Traffic counts every operand
 * once.
 */
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
    .memory_bytes = attention_bwd_memory_bytes,
};

/* ---- attention_bwd_o ---- */

static uint64_t
attention_bwd_o_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t delta = 2 * lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;
    const uint64_t inputs = (2 * lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t stats = 2 * lh_rows(a) * LH_STAT_BYTES;
    const uint64_t gradients = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;

    return delta + inputs + stats + (a->first ? 1 : 2) * gradients;
}

/*
 * As attention_bwd, but with o instead of delta: every call first computes delta = rowsum(do * o)
 * for its rows, as the public implementations of flash attention do. This adds memory traffic:
 * reads do and o once more, writes delta.
 */
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
    .memory_bytes = attention_bwd_o_memory_bytes,
};

/* ---- delta ---- */

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a);
}

static uint64_t
delta_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 2 * lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;
}

/*
 * delta = rowsum(do * o), the backward pass's input from o.
 */
const LhKernel lh_kernel_delta = {
    .name = "delta",
    .summary = "rowsum(do * o) of every query row",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_READ, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "delta", LH_OPERAND_WRITE, LH_TENSOR_DELTA, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = delta_memory_bytes,
};
