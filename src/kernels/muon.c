/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muon (https://kellerjordan.github.io/posts/muon/): the momentum of a matrix is replaced by a
 * matrix of nearly the same singular vectors whose singular values are all about 1, and that is
 * what is added to the weight. Newton-Schulz steps compute it from products alone: with X the
 * momentum divided by its Frobenius norm, each is X = a X + (b A + c A A) X with A = X X^T.
 *
 * A weight is `experts` blocks of rows x `halves` blocks of columns, each a matrix of its own. X
 * has all of them, one behind the other, transposed if they have more rows than columns, so that A
 * is as small as possible. Slices of the weight, among ranks or in pieces, are joined before and
 * split afterwards.
 */
#include "kernels/layer.h"

/* ---- passes over the parameters of a shard ---- */

/* Operand 1 is the norm. */
static uint64_t
momentum_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 1 ? 1 : a->optimizer.count;
}

static uint64_t
update_elements(const LhKernelArgs *a, unsigned operand)
{
    (void)operand;
    return a->optimizer.count;
}

/* Scale of the gradient 1, momentum 3, its mixture with the gradient 3. */
static uint64_t
momentum_flops(const LhKernelArgs *a)
{
    return 7 * a->optimizer.count;
}

/* Decay 2, step 2. */
static uint64_t
update_flops(const LhKernelArgs *a)
{
    return 4 * a->optimizer.count;
}

#define MUON(word, what, counted, elements, ...)                                                   \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_OPTIMIZER,                                                                 \
        .effect = LH_EFFECT_LAYER,                                                                 \
        .cost = LH_COST_MEMORY,                                                                    \
        .operands = { __VA_ARGS__, LH_OPERANDS_END },                                              \
        .flops = counted,                                                                          \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = elements,                                                              \
    };

#define UPDATE_OF LH_NARROW("update", READ, GRADIENT)

MUON(muon_momentum, "momentum = average of gradients; update = its mixture with the gradient",
     momentum_flops, momentum_elements, LH_OF_WEIGHTS("gradient", READ, GRADIENT),
     LH_FP32("norm", READ, NUMBERS), LH_FP32("momentum", UPDATE, MOMENTS),
     LH_NARROW("update", WRITE, GRADIENT))
MUON(muon_momentum16, "the same with a momentum of the weights' type", momentum_flops,
     momentum_elements, LH_OF_WEIGHTS("gradient", READ, GRADIENT), LH_FP32("norm", READ, NUMBERS),
     LH_NARROW("momentum", UPDATE, MOMENTS), LH_NARROW("update", WRITE, GRADIENT))
MUON(muon_update, "adds an orthogonal update to fp32 master weights; w = rounded", update_flops,
     update_elements, UPDATE_OF, LH_FP32("master", UPDATE, MASTER),
     LH_OF_WEIGHTS("w", WRITE, WEIGHT))
MUON(muon_update_direct, "adds an orthogonal update to weights of any type, rounded to it",
     update_flops, update_elements, UPDATE_OF, LH_NARROW("w", UPDATE, WEIGHT))

/* ---- whole matrices ---- */

static uint64_t
whole_elements(const LhKernelArgs *a)
{
    return a->muon.rows * a->muon.width;
}

/* Elements of one of the slices that the weight is cut into. */
static uint64_t
slice_elements(const LhKernelArgs *a)
{
    return whole_elements(a) / lh_muon_cuts(a);
}

static uint64_t
gram_elements(const LhKernelArgs *a)
{
    const LhProductShape m = lh_muon_matrices(a);

    return m.matrices * m.rows * m.rows;
}

static uint64_t
join_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? (a->muon.slices > 1 ? a->muon.slices : 1) * slice_elements(a)
                        : whole_elements(a);
}

static uint64_t
split_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? whole_elements(a) : slice_elements(a);
}

static uint64_t
muon_gram_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? whole_elements(a) : gram_elements(a);
}

static uint64_t
square_elements(const LhKernelArgs *a, unsigned operand)
{
    (void)operand;
    return gram_elements(a);
}

static uint64_t
step_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? gram_elements(a) : whole_elements(a);
}

/* Squares and their sum 2, quotient 1. */
static uint64_t
join_flops(const LhKernelArgs *a)
{
    return 3 * whole_elements(a);
}

static uint64_t
split_flops(const LhKernelArgs *a)
{
    return slice_elements(a);
}

/* The products, and the sums of their results with a multiple of an operand. */
static uint64_t
gram_flops(const LhKernelArgs *a)
{
    return 2 * lh_muon_matrices(a).rows * whole_elements(a);
}

static uint64_t
square_flops(const LhKernelArgs *a)
{
    return (2 * lh_muon_matrices(a).rows + 3) * gram_elements(a);
}

static uint64_t
step_flops(const LhKernelArgs *a)
{
    return (2 * lh_muon_matrices(a).rows + 2) * whole_elements(a);
}

#define WHOLE(word, what, model, result, counted, elements, ...)                                   \
    LH_LAYER_BYTES(word)                                                                           \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_MUON,                                                                      \
        .effect = LH_EFFECT_LAYER,                                                                 \
        .cost = model,                                                                             \
        .operands = { __VA_ARGS__, LH_OPERANDS_END },                                              \
        .flops = counted,                                                                          \
        .memory_bytes = word##_bytes,                                                              \
        .operand_elements = elements,                                                              \
        .product = result,                                                                         \
    };

WHOLE(muon_join, "joins slices of updates to x, whole matrices divided by their norms",
      LH_COST_MEMORY, LH_PRODUCT_Y, join_flops, join_elements, LH_NARROW("slices", READ, GRADIENT),
      LH_NARROW("x", WRITE, GRADIENT))
WHOLE(muon_gram, "a = x x^T for each matrix", LH_COST_PRODUCT, LH_PRODUCT_GRAM, gram_flops,
      muon_gram_elements, LH_NARROW("x", READ, GRADIENT), LH_NARROW("a", WRITE, GRADIENT))
WHOLE(muon_square, "p = b a + c a a for each matrix", LH_COST_PRODUCT, LH_PRODUCT_SQUARE,
      square_flops, square_elements, LH_NARROW("a", READ, GRADIENT),
      LH_NARROW("p", WRITE, GRADIENT))
WHOLE(muon_step, "y = a x + p x for each matrix, the end of a Newton-Schulz step", LH_COST_PRODUCT,
      LH_PRODUCT_POLYNOMIAL, step_flops, step_elements, LH_NARROW("p", READ, GRADIENT),
      LH_NARROW("x", READ, GRADIENT), LH_NARROW("y", WRITE, GRADIENT))
WHOLE(muon_split, "the rank's slice of x, scaled", LH_COST_MEMORY, LH_PRODUCT_Y, split_flops,
      split_elements, LH_NARROW("x", READ, GRADIENT), LH_NARROW("slice", WRITE, GRADIENT))
