/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of the rows outside attention: traffic by operands, or by the bytes that a framework
 * is known to move per element.
 */
#pragma once

#include "kernels/kernel.h"

/*
 * Returns the bytes that a call of @kernel moves: every operand once, twice if it is read and
 * written; or, if the arguments give a number of bytes, that number per element of the output.
 */
uint64_t lh_layer_bytes(const LhKernel *kernel, const LhKernelArgs *args, uint32_t element_bytes);

/* Whether x of a product, or its gradient, is a tensor of attention. */
static inline bool
lh_product_is_by_heads(const LhKernel *kernel)
{
    return kernel->operands[0].kind == LH_TENSOR_O || kernel->operands[2].kind == LH_TENSOR_DO;
}

/* Elements of the forward call's output. */
static inline uint64_t
lh_rows_elements(const LhKernelArgs *a)
{
    return a->rows.rows * a->rows.width;
}

/* Ranks that the vocabulary of a loss is divided among. */
static inline uint64_t
lh_loss_members(const LhKernelArgs *a)
{
    return a->rows.width > 0 ? (a->rows.vocabulary + a->rows.width - 1) / a->rows.width : 0;
}

/* Numbers per row written by loss_stats: maximum, sum of exponentials, the target's logit. */
#define LH_LOSS_STATS 3

/* Numbers per choice of a row: the expert and its weight. */
#define LH_ROUTE_NUMBERS 2

/* Whether a product is one of experts; its last operand maps rows to experts. */
static inline bool
lh_product_is_of_experts(const LhKernel *kernel)
{
    return kernel->operands[3].access != LH_OPERAND_END;
}

/* Defines memory_bytes() of a row, called word_bytes. */
#define LH_LAYER_BYTES(word)                                                                       \
    extern const LhKernel lh_kernel_##word;                                                        \
    static uint64_t word##_bytes(const LhKernelArgs *a, uint32_t element_bytes)                    \
    {                                                                                              \
        return lh_layer_bytes(&lh_kernel_##word, a, element_bytes);                                \
    }

/* Operands of most rows. */
#define LH_HIDDEN(name, access)                                                                    \
    {                                                                                              \
        name, LH_OPERAND_##access, LH_TENSOR_HIDDEN, LH_ELEMENT_EITHER                             \
    }
#define LH_OF_WEIGHTS(name, access, kind)                                                          \
    {                                                                                              \
        name, LH_OPERAND_##access, LH_TENSOR_##kind, LH_ELEMENT_EITHER                             \
    }
#define LH_BY_HEADS(name, access, kind, element)                                                   \
    {                                                                                              \
        name, LH_OPERAND_##access, LH_TENSOR_##kind, LH_ELEMENT_##element                          \
    }
#define LH_FP32(name, access, kind)                                                                \
    {                                                                                              \
        name, LH_OPERAND_##access, LH_TENSOR_##kind, LH_ELEMENT_FP32                               \
    }
#define LH_INT8(name, access, kind)                                                                \
    {                                                                                              \
        name, LH_OPERAND_##access, LH_TENSOR_##kind, LH_ELEMENT_INT8                               \
    }
#define LH_NARROW(name, access, kind)                                                              \
    {                                                                                              \
        name, LH_OPERAND_##access, LH_TENSOR_##kind, LH_ELEMENT_ACTIVATION                         \
    }
#define LH_ROUTE(name, access) LH_FP32(name, access, HIDDEN)
#define LH_OPERANDS_END                                                                            \
    {                                                                                              \
        .access = LH_OPERAND_END                                                                   \
    }
