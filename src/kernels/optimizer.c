/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdamW on a shard of the parameters, with gradients clipped to a maximum norm, and the sum of
 * squares for that norm. The clock counts steps; each call increments it.
 */
#include "kernels/layer.h"

enum { GRADIENT, NORM, CLOCK };

/* Operands: gradient, norm. */
static uint64_t
norm_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == GRADIENT ? a->optimizer.count : 1;
}

/* Operands: gradient, norm, clock, then moments at @moments, and tensors like the weights. */
static uint64_t
state_elements(const LhKernelArgs *a, unsigned operand, unsigned moments)
{
    if (operand == NORM || operand == CLOCK)
        return 1;
    return (operand == moments ? 2 : 1) * a->optimizer.count;
}

static uint64_t
adam_elements(const LhKernelArgs *a, unsigned operand)
{
    return state_elements(a, operand, CLOCK + 2);
}

static uint64_t
adam_fp32_elements(const LhKernelArgs *a, unsigned operand)
{
    return state_elements(a, operand, CLOCK + 1);
}

static uint64_t
norm_flops(const LhKernelArgs *a)
{
    return 2 * a->optimizer.count;
}

/*
 * Flops per parameter: gradient scale 1, moments 3 and 4, their correction 2, root, epsilon,
 * quotient, decay 2, step 2.
 */
static uint64_t
adam_flops(const LhKernelArgs *a)
{
    return 17 * a->optimizer.count;
}

#define OPTIMIZER(word, what, counted, elements, ...)                                              \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_OPTIMIZER,                                                                 \
        .effect = LH_EFFECT_LAYER,                                                                 \
        .cost = LH_COST_MEMORY,                                                                    \
        .operands = { LH_OF_WEIGHTS("gradient", READ, GRADIENT), __VA_ARGS__, LH_OPERANDS_END },   \
        .flops = counted,                                                                          \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = elements,                                                              \
    };

OPTIMIZER(grad_norm, "norm += sum of the squared gradient", norm_flops, norm_elements,
          LH_FP32("norm", UPDATE, NUMBERS))
OPTIMIZER(adam, "AdamW step on fp32 master weights; w = rounded master weights", adam_flops,
          adam_elements, LH_FP32("norm", READ, NUMBERS), LH_FP32("clock", UPDATE, NUMBERS),
          LH_FP32("master", UPDATE, MASTER), LH_FP32("moments", UPDATE, MOMENTS),
          LH_OF_WEIGHTS("w", WRITE, WEIGHT))
OPTIMIZER(adam_fp32, "AdamW step on fp32 weights", adam_flops, adam_fp32_elements,
          LH_FP32("norm", READ, NUMBERS), LH_FP32("clock", UPDATE, NUMBERS),
          LH_FP32("moments", UPDATE, MOMENTS), LH_FP32("w", UPDATE, WEIGHT))
