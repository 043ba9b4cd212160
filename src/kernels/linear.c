/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear attention in blocks: within a block, with all earlier tokens through their state, the
 * state itself, and the gradients.
 */
#include "kernels/sizes.h"

/* ---- linear_intra ---- */

static uint64_t
linear_intra_flops(const LhKernelArgs *a)
{
    const LhLinearTiles t = lh_linear_tiles(a);
    const uint64_t decays = t.count > 2 ? t.count - 2 : 0; /* of nonempty states */

    return 4 * (uint64_t)a->batch * a->heads * a->head_dim * t.pairs +
           lh_state_flops(a, t.before + t.behind + decays);
}

static uint64_t
linear_intra_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t o = (a->first ? 1 : 2) * lh_q_elements(a);

    return (lh_q_elements(a) + lh_kv_elements(a) + o) * element_bytes;
}

/*
 * Linear attention among the tokens of a call, forward: o += ((q k^T) D) v with D[i][j] = decay^(i
 * - j) under the mask; no softmax, no scale. Distances are in rows, so decay needs a causal mask.
 */
const LhKernel lh_kernel_linear_intra = {
    .name = "linear_intra",
    .summary = "linear attention among the tokens of a block, forward",
    .effect = LH_EFFECT_ATTEND,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_UPDATE, LH_TENSOR_O, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_intra_flops,
    .memory_bytes = linear_intra_memory_bytes,
    .linear = true,
};

/* ---- linear_inter ---- */

static uint64_t
linear_inter_flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a) * a->head_dim;
}

static uint64_t
linear_inter_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return state + (a->first ? 2 : 3) * lh_q_elements(a) * element_bytes;
}

/*
 * Linear attention with the tokens before the call's, through their state, forward: o_i +=
 * decay^(i+1) q_i state.
 */
const LhKernel lh_kernel_linear_inter = {
    .name = "linear_inter",
    .summary = "linear attention with all earlier tokens through their state, forward",
    .effect = LH_EFFECT_STATE_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "state", LH_OPERAND_READ, LH_TENSOR_STATE, LH_ELEMENT_FP32 },
        { "o", LH_OPERAND_UPDATE, LH_TENSOR_O, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_inter_flops,
    .memory_bytes = linear_inter_memory_bytes,
    .linear = true,
};

/* ---- linear_state ---- */

static uint64_t
linear_state_flops(const LhKernelArgs *a)
{
    /* One product of 2 d flops per key element of every query head; the decay of the old state. */
    return 2 * (uint64_t)a->batch * a->nk * a->heads * a->head_dim * a->head_dim +
           (a->first ? 0 : 2 * lh_state_elements(a));
}

static uint64_t
linear_state_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return (a->first ? 1 : 2) * state + lh_kv_elements(a) * element_bytes;
}

/*
 * The state after the tokens of a call: state = decay^n state + sum of decay^(n-1-i) k_i^T v_i.
 * With `first` it holds these tokens alone; linear_carry then adds earlier ones.
 */
const LhKernel lh_kernel_linear_state = {
    .name = "linear_state",
    .summary = "adds keys and values to the state of linear attention",
    .effect = LH_EFFECT_STATE_SUM,
    .cost = LH_COST_GEMM,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "state", LH_OPERAND_UPDATE, LH_TENSOR_STATE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_state_flops,
    .memory_bytes = linear_state_memory_bytes,
    .linear = true,
};

/* ---- linear_carry ---- */

static uint64_t
linear_carry_flops(const LhKernelArgs *a)
{
    return (a->first ? 1 : 2) * lh_state_elements(a);
}

static uint64_t
linear_carry_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return (a->first ? 2 : 3) * lh_state_elements(a) * LH_FP32_BYTES;
}

/*
 * Carries a state, or its gradient, over the n = nq + nk tokens of a block (one of the two is 0):
 * target = decay^n source + target; with `first` target = decay^n source.
 */
const LhKernel lh_kernel_linear_carry = {
    .name = "linear_carry",
    .summary = "adds the decayed state of earlier tokens to that of a block",
    .effect = LH_EFFECT_STATE_CARRY,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_carry_flops,
    .memory_bytes = linear_carry_memory_bytes,
    .linear = true,
};

/* ---- linear_prefix ---- */

static uint64_t
linear_prefix_flops(const LhKernelArgs *a)
{
    return 2 * a->states * lh_state_elements(a);
}

static uint64_t
linear_prefix_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return ((uint64_t)a->states + 1) * lh_state_elements(a) * LH_FP32_BYTES;
}

/*
 * Sums the states of consecutive blocks of n = nq + nk tokens each (one of the two is 0), in the
 * order of the blocks: source i of m has the factor decay^((m-1-i) n), the last one 1. Gradients
 * (nq) are summed from the other side: decay^(i n), the first one has 1.
 */
const LhKernel lh_kernel_linear_prefix = {
    .name = "linear_prefix",
    .summary = "sums the decayed states of consecutive blocks",
    .effect = LH_EFFECT_STATE_PREFIX,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "sources", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_prefix_flops,
    .memory_bytes = linear_prefix_memory_bytes,
    .linear = true,
};

/* ---- linear_intra_bwd ---- */

/*
 * Flops of dq with the states of earlier tokens; then dk and dv, in reverse order, with the states'
 * gradients.
 */
static uint64_t
linear_intra_bwd_flops(const LhKernelArgs *a)
{
    const LhLinearTiles t = lh_linear_tiles(a);
    const uint64_t decays = t.count > 2 ? t.count - 2 : 0;

    return 10 * (uint64_t)a->batch * a->heads * a->head_dim * t.pairs +
           lh_state_flops(a, 3 * t.before + 2 * t.behind + 2 * decays);
}

/* With several tiles the reverse pass reads do, k and v a second time. */
static uint64_t
linear_intra_bwd_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t again = lh_linear_tiles(a).count > 1 ? lh_q_elements(a) + lh_kv_elements(a) : 0;
    const uint64_t inputs = 2 * lh_q_elements(a) + lh_kv_elements(a) + again;
    const uint64_t gradients = lh_q_elements(a) + lh_kv_elements(a);

    return (inputs + (a->first ? 1 : 2) * gradients) * element_bytes;
}

/*
 * Backward of linear_intra: dq += ((do v^T) D) k, dk += ((do v^T) D)^T q, dv += ((q k^T) D)^T do.
 */
const LhKernel lh_kernel_linear_intra_bwd = {
    .name = "linear_intra_bwd",
    .summary = "linear attention among the tokens of a block, backward",
    .effect = LH_EFFECT_ATTEND_GRAD,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "dq", LH_OPERAND_UPDATE, LH_TENSOR_DQ, LH_ELEMENT_EITHER },
        { "dkv", LH_OPERAND_UPDATE, LH_TENSOR_DKV, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_intra_bwd_flops,
    .memory_bytes = linear_intra_bwd_memory_bytes,
    .linear = true,
};

/* ---- linear_inter_bwd ---- */

/*
 * Backward of linear_inter in q: dq_i += decay^(i+1) do_i state^T. linear_dstate computes the
 * gradient of the state.
 */
const LhKernel lh_kernel_linear_inter_bwd = {
    .name = "linear_inter_bwd",
    .summary = "gradient of q through the state of all earlier tokens",
    .effect = LH_EFFECT_STATE_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "state", LH_OPERAND_READ, LH_TENSOR_STATE, LH_ELEMENT_FP32 },
        { "dq", LH_OPERAND_UPDATE, LH_TENSOR_DQ, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_inter_flops,
    .memory_bytes = linear_inter_memory_bytes,
    .linear = true,
};

/* ---- linear_state_bwd ---- */

static uint64_t
linear_state_bwd_flops(const LhKernelArgs *a)
{
    /* Two products of 2 d flops per key element of every query head. */
    return 4 * (uint64_t)a->batch * a->nk * a->heads * a->head_dim * a->head_dim;
}

static uint64_t
linear_state_bwd_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return state + (a->first ? 2 : 3) * lh_kv_elements(a) * element_bytes;
}

/*
 * Backward of linear_state in k and v, from the gradient of the state after the tokens.
 */
const LhKernel lh_kernel_linear_state_bwd = {
    .name = "linear_state_bwd",
    .summary = "gradients of k and v through the state after them",
    .effect = LH_EFFECT_STATE_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "dstate", LH_OPERAND_READ, LH_TENSOR_DSTATE, LH_ELEMENT_FP32 },
        { "dkv", LH_OPERAND_UPDATE, LH_TENSOR_DKV, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_state_bwd_flops,
    .memory_bytes = linear_state_bwd_memory_bytes,
    .linear = true,
};

/* ---- linear_dstate ---- */

static uint64_t
linear_dstate_flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a) * a->head_dim + (a->first ? 0 : 2 * lh_state_elements(a));
}

static uint64_t
linear_dstate_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return (a->first ? 1 : 2) * state + 2 * lh_q_elements(a) * element_bytes;
}

/*
 * The gradient of the state before the tokens of a call: dstate = decay^n dstate + sum of
 * decay^(i+1) q_i^T do_i. With `first` it holds these tokens alone; linear_carry then adds later
 * ones.
 */
const LhKernel lh_kernel_linear_dstate = {
    .name = "linear_dstate",
    .summary = "gradient of the state that a block of queries reads",
    .effect = LH_EFFECT_STATE_SUM,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "dstate", LH_OPERAND_UPDATE, LH_TENSOR_DSTATE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = linear_dstate_flops,
    .memory_bytes = linear_dstate_memory_bytes,
    .linear = true,
};
