/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds gradients; converts, copies and zeroes elements; splits and joins k and v.
 */
#include "kernels/sizes.h"

/* ---- add ---- */

static uint64_t
add_flops(const LhKernelArgs *a)
{
    return a->first ? 0 : lh_elements(a);
}

static uint64_t
add_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (a->first ? 2 : 3) * lh_elements(a) * element_bytes;
}

/*
 * target += source, both of the activation's type: 16-bit accumulation of gradients, as in
 * LightSeq.
 */
const LhKernel lh_kernel_add = {
    .name = "add",
    .summary = "adds gradients, both in the activation's type",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = add_flops,
    .memory_bytes = add_memory_bytes,
};

/* ---- add_to_fp32 ---- */

static uint64_t
add_to_fp32_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_elements(a) * (element_bytes + (a->first ? 1 : 2) * LH_FP32_BYTES);
}

/*
 * target += source, the target in fp32: accumulation of gradients as in ring-flash-attention.
 */
const LhKernel lh_kernel_add_to_fp32 = {
    .name = "add_to_fp32",
    .summary = "adds gradients to fp32 sums",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_EITHER },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = add_flops,
    .memory_bytes = add_to_fp32_memory_bytes,
};

/* ---- add_from_fp32 ---- */

static uint64_t
add_from_fp32_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_elements(a) * (LH_FP32_BYTES + (a->first ? 1 : 2) * element_bytes);
}

/*
 * target += source, the source in fp32: gradients transferred as fp32.
 */
const LhKernel lh_kernel_add_from_fp32 = {
    .name = "add_from_fp32",
    .summary = "adds fp32 gradients to sums of the activation's type",
    .effect = LH_EFFECT_ADD,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = add_flops,
    .memory_bytes = add_from_fp32_memory_bytes,
};

/* ---- cast ---- */

static uint64_t
cast_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_elements(a) * (element_bytes + LH_FP32_BYTES);
}

/*
 * Converts gradients between the activation's type and fp32.
 */
const LhKernel lh_kernel_cast = {
    .name = "cast",
    .summary = "converts between the activation's type and fp32",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_EITHER },
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_OTHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_no_flops,
    .memory_bytes = cast_memory_bytes,
};

/* ---- copy ---- */

static uint64_t
copy_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 2 * lh_elements(a) * element_bytes;
}

/*
 * Copies within device memory, both sides of the activation's type.
 */
const LhKernel lh_kernel_copy = {
    .name = "copy",
    .summary = "copies a tensor",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_no_flops,
    .memory_bytes = copy_memory_bytes,
};

/* ---- zero ---- */

static uint64_t
zero_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_elements(a) * element_bytes;
}

/*
 * Clears an accumulator.
 */
const LhKernel lh_kernel_zero = {
    .name = "zero",
    .summary = "clears an accumulator",
    .effect = LH_EFFECT_ZERO,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_no_flops,
    .memory_bytes = zero_memory_bytes,
};

/* ---- expand_kv ---- */

static uint64_t
operand_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? lh_kv_elements(a) : lh_kv_elements(a) / a->groups * a->heads;
}

static uint64_t
expand_kv_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return (operand_elements(a, 0) + operand_elements(a, 1)) * element_bytes;
}

/*
 * Repeats the key-value heads for the query heads that share them, as frameworks do whose attention
 * needs equal numbers of both. Attention here takes key-value heads as they are, so no other kernel
 * reads the result: the row stands for time and memory.
 */
const LhKernel lh_kernel_expand_kv = {
    .name = "expand_kv",
    .summary = "repeats key-value heads: one for every query head",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "expanded", LH_OPERAND_WRITE, LH_TENSOR_HIDDEN, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_no_flops,
    .memory_bytes = expand_kv_memory_bytes,
    .operand_elements = operand_elements,
};

/* ---- take_k ---- */

static uint64_t
take_k_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 2 * lh_k_elements(a) * element_bytes;
}

/*
 * Copies k out of kv.
 */
const LhKernel lh_kernel_take_k = {
    .name = "take_k",
    .summary = "copies k out of kv",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "k", LH_OPERAND_WRITE, LH_TENSOR_K, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_no_flops,
    .memory_bytes = take_k_memory_bytes,
};

/* ---- take_v ---- */

/*
 * Copies v out of kv.
 */
const LhKernel lh_kernel_take_v = {
    .name = "take_v",
    .summary = "copies v out of kv",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "v", LH_OPERAND_WRITE, LH_TENSOR_V, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_no_flops,
    .memory_bytes = take_k_memory_bytes,
};

/* ---- join_dkv ---- */

static uint64_t
join_dkv_memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 2 * lh_kv_elements(a) * element_bytes;
}

/*
 * Joins dk and dv to dkv, rounded to the activation's type.
 */
const LhKernel lh_kernel_join_dkv = {
    .name = "join_dkv",
    .summary = "joins dk and dv, rounded",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "dk", LH_OPERAND_READ, LH_TENSOR_DK, LH_ELEMENT_EITHER },
        { "dv", LH_OPERAND_READ, LH_TENSOR_DV, LH_ELEMENT_EITHER },
        { "dkv", LH_OPERAND_WRITE, LH_TENSOR_DKV, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_no_flops,
    .memory_bytes = join_dkv_memory_bytes,
};
