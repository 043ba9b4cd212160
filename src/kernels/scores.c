/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention with scores in memory: products with whole rows of scores, their softmax, and the
 * gradients of both.
 */
#include "kernels/sizes.h"

/* ---- scores ---- */

static uint64_t
scores_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (lh_q_elements(a) + lh_k_elements(a)) * element_bytes +
           lh_score_elements(a) * LH_FP32_BYTES;
}

/*
 * Scores of query rows with keys, q k^T, without scale and mask: all are computed. They are fp32,
 * since rounded ones would shift the log-sum-exp by more than its other errors.
 */
const LhKernel lh_kernel_scores = {
    .name = "scores",
    .summary = "scores of queries with keys, to memory",
    .effect = LH_EFFECT_SCORES,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "k", LH_OPERAND_READ, LH_TENSOR_K, LH_ELEMENT_ACTIVATION },
        { "scores", LH_OPERAND_WRITE, LH_TENSOR_SCORES, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = scores_memory_bytes,
};

/* ---- scores_softmax ---- */

/* Scale, difference, power, sum and quotient per score; logarithm and sum per row. */
static uint64_t
scores_softmax_flops(const LhKernelArgs *a)
{
    return 5 * lh_score_elements(a) + 2 * lh_rows(a);
}

static uint64_t
scores_softmax_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t each = a->traffic > 0 ? a->traffic : LH_FP32_BYTES + element_bytes;

    return lh_score_elements(a) * each + lh_rows(a) * LH_STAT_BYTES;
}

/*
 * Softmax of complete rows of scores. Applies the mask, which no earlier kernel does: masked keys
 * get probability 0. Includes the scale of the logits.
 */
const LhKernel lh_kernel_scores_softmax = {
    .name = "scores_softmax",
    .summary = "softmax of complete rows of scores, with their lse",
    .effect = LH_EFFECT_SOFTMAX,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "scores", LH_OPERAND_READ, LH_TENSOR_SCORES, LH_ELEMENT_FP32 },
        { "probs", LH_OPERAND_WRITE, LH_TENSOR_PROBS, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = scores_softmax_flops,
    .memory_bytes = scores_softmax_memory_bytes,
};

/* ---- scores_o ---- */

static uint64_t
scores_o_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return ((a->first ? 1 : 2) * lh_q_elements(a) + lh_k_elements(a) + lh_score_elements(a)) *
           element_bytes;
}

/*
 * o += p v, with probabilities from memory.
 */
const LhKernel lh_kernel_scores_o = {
    .name = "scores_o",
    .summary = "output of attention from probabilities in memory",
    .effect = LH_EFFECT_SCORES_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "probs", LH_OPERAND_READ, LH_TENSOR_PROBS, LH_ELEMENT_ACTIVATION },
        { "v", LH_OPERAND_READ, LH_TENSOR_V, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_UPDATE, LH_TENSOR_O, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = scores_o_memory_bytes,
};

/* ---- scores_dv ---- */

static uint64_t
scores_dv_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (lh_q_elements(a) + lh_k_elements(a) + lh_score_elements(a)) * element_bytes;
}

/*
 * dv = p^T do: contribution of the query rows to the gradients of all values of the call.
 */
const LhKernel lh_kernel_scores_dv = {
    .name = "scores_dv",
    .summary = "gradient of values from probabilities in memory",
    .effect = LH_EFFECT_SCORES_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "probs", LH_OPERAND_READ, LH_TENSOR_PROBS, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "dv", LH_OPERAND_WRITE, LH_TENSOR_DV, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = scores_dv_memory_bytes,
};

/* ---- scores_dp ---- */

/*
 * Gradient of the probabilities of query rows, do v^T, without mask.
 */
const LhKernel lh_kernel_scores_dp = {
    .name = "scores_dp",
    .summary = "gradient of probabilities in memory",
    .effect = LH_EFFECT_SCORES,
    .cost = LH_COST_GEMM,
    .operands = {
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "v", LH_OPERAND_READ, LH_TENSOR_V, LH_ELEMENT_ACTIVATION },
        { "dscores", LH_OPERAND_WRITE, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = scores_dv_memory_bytes,
};

/* ---- scores_softmax_bwd ---- */

/* Per score: product and sum for the row's sum, a difference and two products. */
static uint64_t
scores_softmax_bwd_flops(const LhKernelArgs *a)
{
    return 5 * lh_score_elements(a);
}

static uint64_t
scores_softmax_bwd_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_score_elements(a) * (a->traffic > 0 ? a->traffic : 3 * element_bytes);
}

/*
 * Gradient of scores through softmax, for complete rows: ds = scale p (dp - sum of p dp). The mask
 * needs no step here: masked probabilities are 0.
 */
const LhKernel lh_kernel_scores_softmax_bwd = {
    .name = "scores_softmax_bwd",
    .summary = "gradient of scores through softmax, of complete rows",
    .effect = LH_EFFECT_SOFTMAX_GRAD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "probs", LH_OPERAND_READ, LH_TENSOR_PROBS, LH_ELEMENT_ACTIVATION },
        { "dp", LH_OPERAND_READ, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { "ds", LH_OPERAND_WRITE, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .in_place = { .read = 1, .written = 2 },
    .flops = scores_softmax_bwd_flops,
    .memory_bytes = scores_softmax_bwd_memory_bytes,
};

/* ---- scores_dq ---- */

/*
 * dq += ds k.
 */
const LhKernel lh_kernel_scores_dq = {
    .name = "scores_dq",
    .summary = "gradient of queries from that of scores in memory",
    .effect = LH_EFFECT_SCORES_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "dscores", LH_OPERAND_READ, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { "k", LH_OPERAND_READ, LH_TENSOR_K, LH_ELEMENT_ACTIVATION },
        { "dq", LH_OPERAND_UPDATE, LH_TENSOR_DQ, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = scores_o_memory_bytes,
};

/* ---- scores_dk ---- */

/*
 * dk = ds^T q: contribution of the query rows to the gradients of all keys of the call.
 */
const LhKernel lh_kernel_scores_dk = {
    .name = "scores_dk",
    .summary = "gradient of keys from that of scores in memory",
    .effect = LH_EFFECT_SCORES_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "dscores", LH_OPERAND_READ, LH_TENSOR_DSCORES, LH_ELEMENT_ACTIVATION },
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "dk", LH_OPERAND_WRITE, LH_TENSOR_DK, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_score_flops,
    .memory_bytes = scores_dv_memory_bytes,
};
