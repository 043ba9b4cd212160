/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges, normalises and rounds the results of attention blocks.
 */
#include "kernels/sizes.h"

/* ---- merge ---- */

static uint64_t
merge_flops(const LhKernelArgs *a)
{
    /* Two products and a sum per element; maximum, two differences, two powers, and l per row. */
    return a->first ? 0 : 3 * lh_q_elements(a) + 8 * lh_rows(a);
}

static uint64_t
merge_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t stats = 2 * lh_rows(a) * LH_STAT_BYTES;
    const uint64_t source = lh_q_elements(a) * element_bytes + stats;
    const uint64_t acc = lh_q_elements(a) * LH_FP32_BYTES + stats;

    return source + (a->first ? 1 : 2) * acc;
}

/*
 * Merges two unnormalised accumulators (o, m, l) of the same rows: o = e^(m1-m) o1 + e^(m2-m) o2,
 * likewise l. With `first` the target is a copy of the source.
 */
const LhKernel lh_kernel_merge = {
    .name = "merge",
    .summary = "adds one attention accumulator (o, m, l) to another",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ACC, LH_ELEMENT_ACTIVATION },
        { "acc", LH_OPERAND_UPDATE, LH_TENSOR_ACC, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = merge_flops,
    .memory_bytes = merge_memory_bytes,
};

/* ---- merge_lse ---- */

static uint64_t
merge_lse_flops(const LhKernelArgs *a)
{
    /* Difference, product, difference per element; sigmoid (4) and log-sigmoid update (5) per row.
     */
    return a->first ? 0 : 3 * lh_q_elements(a) + 9 * lh_rows(a);
}

static uint64_t
merge_lse_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t elements = lh_q_elements(a);
    const uint64_t cast = element_bytes + LH_FP32_BYTES, unary = 2 * LH_FP32_BYTES,
                   binary = 3 * LH_FP32_BYTES;
    const uint64_t stats = 4 * lh_rows(a) * LH_STAT_BYTES;

    return elements * (a->first ? cast : cast + unary + 2 * binary) + stats;
}

/*
 * Merges the normalised output of a block (o, lse) into fp32 (out, lse), as ring-flash-attention
 * does: out -= sigmoid(lse_block - lse) (out - o); lse -= log sigmoid(lse - lse_block). With
 * `first` it only stores. Out may be a block itself, of the activation's type, with the same cost.
 * Traffic is that of the public code, one PyTorch kernel per operation: cast of o, difference,
 * product, difference.
 */
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
    .flops = merge_lse_flops,
    .memory_bytes = merge_lse_memory_bytes,
};

/* ---- merge_stat ---- */

static uint64_t
merge_stat_flops(const LhKernelArgs *a)
{
    /* Maximum, difference, exponential, logarithm, sum. */
    return a->first ? 0 : 5 * lh_rows(a);
}

static uint64_t
merge_stat_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return (a->first ? 2 : 3) * lh_rows(a) * LH_STAT_BYTES;
}

/*
 * Adds the lse of a normalised block to a running lse. TransformerEngine does so after every step
 * of its ring, before it corrects the outputs.
 */
const LhKernel lh_kernel_merge_stat = {
    .name = "merge_stat",
    .summary = "adds the lse of a normalised block to a running lse",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "block", LH_OPERAND_READ, LH_TENSOR_OUT, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_UPDATE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = merge_stat_flops,
    .memory_bytes = merge_stat_memory_bytes,
};

/* ---- weigh_out ---- */

static uint64_t
weigh_out_flops(const LhKernelArgs *a)
{
    /* Product and sum per element; difference and exponential per row. */
    return (a->first ? 1 : 2) * lh_q_elements(a) + 2 * lh_rows(a);
}

static uint64_t
weigh_out_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_q_elements(a) * (element_bytes + (a->first ? 1 : 2) * LH_FP32_BYTES) +
           2 * lh_rows(a) * LH_STAT_BYTES;
}

/*
 * Adds the o of a normalised block to an fp32 sum, weighted by exp(lse of the block - lse), where
 * lse is that of all keys: the output correction of TransformerEngine, one fused kernel per block
 * after the last step of its ring.
 */
const LhKernel lh_kernel_weigh_out = {
    .name = "weigh_out",
    .summary = "adds a normalised block's o, weighted by the lse of all keys, to an fp32 sum",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "block", LH_OPERAND_READ, LH_TENSOR_OUT, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_READ, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { "out", LH_OPERAND_UPDATE, LH_TENSOR_O, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = weigh_out_flops,
    .memory_bytes = weigh_out_memory_bytes,
};

/* ---- normalise ---- */

static uint64_t
normalise_flops(const LhKernelArgs *a)
{
    /* A quotient per element; logarithm and sum per row. */
    return lh_q_elements(a) + 2 * lh_rows(a);
}

static uint64_t
normalise_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_q_elements(a) * (LH_FP32_BYTES + element_bytes) + 3 * lh_rows(a) * LH_STAT_BYTES;
}

/*
 * Finalises an accumulator: o = acc / l, lse = m + log l. Systems that do this inside the last
 * attention call save its traffic.
 */
const LhKernel lh_kernel_normalise = {
    .name = "normalise",
    .summary = "turns an attention accumulator (o, m, l) into o and lse",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "acc", LH_OPERAND_READ, LH_TENSOR_ACC, LH_ELEMENT_EITHER },
        { "o", LH_OPERAND_WRITE, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = normalise_flops,
    .memory_bytes = normalise_memory_bytes,
};

/* ---- round_out ---- */

static uint64_t
round_out_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_q_elements(a) * (LH_FP32_BYTES + element_bytes) + 2 * lh_rows(a) * LH_STAT_BYTES;
}

/*
 * Finalises a normalised fp32 accumulator (out, lse): rounds o to the activation's type.
 */
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
    .flops = lh_no_flops,
    .memory_bytes = round_out_memory_bytes,
};

/* ---- copy_out ---- */

static uint64_t
copy_out_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 2 * lh_q_elements(a) * element_bytes + 2 * lh_rows(a) * LH_STAT_BYTES;
}

/*
 * Finalises a normalised accumulator (out, lse) of the activation's type: copies it to separate
 * tensors o and lse.
 */
const LhKernel lh_kernel_copy_out = {
    .name = "copy_out",
    .summary = "copies a normalised accumulator (o, lse) to o and lse",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "out", LH_OPERAND_READ, LH_TENSOR_OUT, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_WRITE, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_no_flops,
    .memory_bytes = copy_out_memory_bytes,
};
