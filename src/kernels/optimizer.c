/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdamW on a shard of the parameters, with gradients clipped to a maximum norm, and the sum of
 * squares for that norm. The clock counts steps; each call increments it. Rows differ in what is
 * updated (an fp32 master copy, fp32 weights, or the weights themselves in their own type) and in
 * the element type of the moments, which are rounded when they are stored, behind the update.
 */
#include "kernels/layer.h"
#include "kernels/sizes.h"

enum { GRADIENT, NORM, CLOCK };

/* Operands: gradient, norm. */
static uint64_t
norm_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == GRADIENT ? a->optimizer.count : 1;
}

/* Operands: gradient, norm, clock, then moments at @moments, the scales of int8 moments behind them
 * (unless @scales is 0), and tensors like the weights. */
static uint64_t
state_elements(const LhKernelArgs *a, unsigned operand, unsigned moments, unsigned scales)
{
    if (operand == NORM || operand == CLOCK)
        return 1;
    if (scales != 0 && operand == scales)
        return lh_moment_scales(a->optimizer.count);
    return (operand == moments ? 2 : 1) * a->optimizer.count;
}

static uint64_t
adam_elements(const LhKernelArgs *a, unsigned operand)
{
    return state_elements(a, operand, CLOCK + 2, 0);
}

static uint64_t
adam_moments8_elements(const LhKernelArgs *a, unsigned operand)
{
    return state_elements(a, operand, CLOCK + 2, CLOCK + 3);
}

static uint64_t
direct_elements(const LhKernelArgs *a, unsigned operand)
{
    return state_elements(a, operand, CLOCK + 1, 0);
}

static uint64_t
direct_moments8_elements(const LhKernelArgs *a, unsigned operand)
{
    return state_elements(a, operand, CLOCK + 1, CLOCK + 2);
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

/* And of int8 moments: two products and a square to read them; two maxima, a root and two quotients
 * to store them. */
static uint64_t
moments8_flops(const LhKernelArgs *a)
{
    return adam_flops(a) + 8 * a->optimizer.count;
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
#define COUNTERS LH_FP32("norm", READ, NUMBERS), LH_FP32("clock", UPDATE, NUMBERS)
#define MASTER LH_FP32("master", UPDATE, MASTER)
#define MOMENTS8 LH_INT8("moments", UPDATE, MOMENTS), LH_FP32("scales", UPDATE, NUMBERS)
#define ROUNDED LH_OF_WEIGHTS("w", WRITE, WEIGHT)

OPTIMIZER(adam, "AdamW step on fp32 master weights; w = rounded master weights", adam_flops,
          adam_elements, COUNTERS, MASTER, LH_FP32("moments", UPDATE, MOMENTS), ROUNDED)
OPTIMIZER(adam_moments16, "the same with 16-bit moments", adam_flops, adam_elements, COUNTERS,
          MASTER, LH_NARROW("moments", UPDATE, MOMENTS), ROUNDED)
OPTIMIZER(adam_moments8, "the same with 8-bit moments", moments8_flops, adam_moments8_elements,
          COUNTERS, MASTER, MOMENTS8, ROUNDED)
OPTIMIZER(adam_fp32, "AdamW step on fp32 weights", adam_flops, direct_elements, COUNTERS,
          LH_FP32("moments", UPDATE, MOMENTS), LH_FP32("w", UPDATE, WEIGHT))
OPTIMIZER(adam_direct, "AdamW step on weights of any type, which is rounded to that type",
          adam_flops, direct_elements, COUNTERS, LH_FP32("moments", UPDATE, MOMENTS),
          LH_NARROW("w", UPDATE, WEIGHT))
OPTIMIZER(adam_direct_moments16, "the same with moments of the weights' type", adam_flops,
          direct_elements, COUNTERS, LH_NARROW("moments", UPDATE, MOMENTS),
          LH_NARROW("w", UPDATE, WEIGHT))
OPTIMIZER(adam_direct_moments8, "the same with 8-bit moments", moments8_flops,
          direct_moments8_elements, COUNTERS, MOMENTS8, LH_NARROW("w", UPDATE, WEIGHT))
