/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernels. One row defines a compute op except for its implementations: operands,
 * exact flops and memory traffic, effect on symbolic contents (for the verifier) and cost model. No
 * code switches on kernel names. A new kernel is one row here, one function in each machine's
 * folder (cpu/) and one word in meson.build.
 */
#pragma once

#include "kernels/args.h"
#include "kernels/tensor.h"

#define LH_KERNEL_OPERANDS_MAX 8

typedef enum {
    LH_OPERAND_END, /* ends an operand list */
    LH_OPERAND_READ,
    LH_OPERAND_WRITE,  /* overwritten without being read */
    LH_OPERAND_UPDATE, /* read and written; written only, when args->first */
    LH_OPERAND_GIVEN,  /* an input of the program, not written; the work that the call stands for
                          would compute it, so it must not be used earlier */
} LhOperandAccess;

/* Effect of an op on the symbolic contents of its operands; the verifier has one rule for each. */
typedef enum {
    LH_EFFECT_ATTEND,      /* operands q, kv, acc..: every acc(q) += pairs(q, kv, mask) */
    LH_EFFECT_ATTEND_GRAD, /* operands q, do, stats.., kv, dq, dkv: both gradients += pairs(q, kv,
                              mask) */
    LH_EFFECT_ADD,         /* operands source.., target (last): target += source: merge of
                              partial attention, sum of gradients; an lse among the sources of an
                              o is that of all keys and weights the other sources */
    LH_EFFECT_DERIVE, /* operands source.. (READ), target.. (WRITE): every target = f(sources), same
                         tokens, same coverage: cast, normalise (acc -> o and lse), delta =
                         rowsum(do * o) */
    LH_EFFECT_ZERO,   /* operand target: an empty accumulator */
    /*
     * Linear attention. A state belongs to the border between two segments and holds the tokens
     * before it, decayed to the border; its gradient holds the tokens after it. A border is named
     * by the segment after it. Calls on states have nk rows, calls on their gradients nq.
     */
    LH_EFFECT_STATE_SUM,    /* operands rows.., state (last): moves the state over the rows and
                               adds them */
    LH_EFFECT_STATE_CARRY,  /* operands before, state: state += before, moved over the call's
                               rows */
    LH_EFFECT_STATE_PREFIX, /* operands states, state: sum of states whose borders are the call's
                               rows apart, in order, each moved to the foremost border */
    LH_EFFECT_STATE_APPLY,  /* operands rows.., state, target (last): target += contribution of
                               the state; its border is where the rows begin (gradients: end) */
    /*
     * Scores in memory. A part holds the rows of one segment of queries against the keys of one
     * segment.
     */
    LH_EFFECT_SCORES,       /* operands rows, keys, scores: scores = rows keys^T */
    LH_EFFECT_SOFTMAX,      /* operands scores, probs, lse: of all keys that the mask allows */
    LH_EFFECT_SOFTMAX_GRAD, /* operands probs, gradient of probs, that of scores: of all keys */
    LH_EFFECT_SCORES_APPLY, /* operands scores, keys, sum by rows: sum += scores keys; or scores,
                               rows, sum by keys: sum += scores^T rows */
    /*
     * The layer around an attention module, whose products are not in its program. These calls take
     * no time and touch no memory; they tell the verifier which data depends on which. A part of
     * activations outside attention is one rank's share of the tokens.
     */
    LH_EFFECT_PROJECT_IN,  /* operands hidden, inputs.. (GIVEN): the inputs are computed from all
                              shares of one tensor */
    LH_EFFECT_PROJECT_OUT, /* operands results.., hidden: all shares of a tensor computed from
                              complete results of the rank's heads: one term of a sum over ranks */
    LH_EFFECT_OUTSIDE,     /* operand hidden: the rest of the layer reads it */
    /*
     * The computed layer outside attention. The step's own table defines what such a call means;
     * here only its reads and writes are known.
     */
    LH_EFFECT_LAYER,
} LhEffect;

/* Model of the kernel's time. */
typedef enum {
    LH_COST_ATTENTION, /* a rate that depends on block length, mask and head dimension */
    LH_COST_MEMORY,    /* memory traffic at memory bandwidth */
    LH_COST_GEMM,      /* products within attention: linear, or of scores in memory */
    LH_COST_PRODUCT,   /* matrix products, at the rate that large ones reach */
    LH_COST_HOST_LINK, /* bytes over the link between device and host */
    LH_COST_OUTSIDE,   /* none: not timed */
} LhCostClass;

/* Element type required of an operand. */
typedef enum {
    LH_ELEMENT_ACTIVATION, /* the slot's element_bytes */
    LH_ELEMENT_FP32,
    LH_ELEMENT_EITHER, /* the kernel has a version for each */
    LH_ELEMENT_OTHER,  /* activation if the first operand is fp32, fp32 if that is activation */
    LH_ELEMENT_INT8,   /* codes; their fp32 scales are an operand of their own */
} LhElementRule;

typedef struct {
    const char *name; /* operand name for messages: "q", "kv", "acc" */
    LhOperandAccess access;
    LhTensorKind kind; /* LH_TENSOR_ANY: any, but the same for all operands with it */
    LhElementRule element;
} LhOperand;

/* Result of a product of LH_ARGS_PRODUCT, then of LH_ARGS_MUON. */
typedef enum {
    LH_PRODUCT_Y,          /* m x n, sums over k */
    LH_PRODUCT_DX,         /* m x k, over n */
    LH_PRODUCT_DW,         /* k x n, over m */
    LH_PRODUCT_GRAM,       /* of a matrix with at most as many rows as columns: rows x rows */
    LH_PRODUCT_SQUARE,     /* of that result */
    LH_PRODUCT_POLYNOMIAL, /* of that result and the matrix */
} LhProductResult;

typedef struct {
    const char *name;    /* "attention_fwd" */
    const char *summary; /* one line */
    LhArgsKind args;
    LhEffect effect;
    LhCostClass cost;
    LhOperand operands[LH_KERNEL_OPERANDS_MAX + 1]; /* in op order, ended by LH_OPERAND_END */
    /*
     * For kernels that work in place: operand @written may be the same region as operand @read. All
     * other operands, and all of other kernels (0, 0), must not overlap: elements may be computed
     * in any order.
     */
    struct {
        uint8_t read, written;
    } in_place;
    /* Exact floating-point operations of the call; a multiply-add counts 2. */
    uint64_t (*flops)(const LhKernelArgs *args);
    /* Bytes read and written in device memory by the call; @element_bytes is the activation's. */
    uint64_t (*memory_bytes)(const LhKernelArgs *args, uint32_t element_bytes);
    /*
     * Elements of the call's operand @operand, over all its parts. NULL: they follow from the
     * attention shape and the segments of the parts.
     */
    uint64_t (*operand_elements)(const LhKernelArgs *args, unsigned operand);
    LhProductResult product; /* for LH_COST_PRODUCT */
    bool linear;             /* linear attention only */
} LhKernel;

typedef enum {
#define LH_KERNEL(id) LH_KERNEL_ID_##id,
#include "kernels.def"
#undef LH_KERNEL
    LH_KERNELS_COUNT
} LhKernelId;

/* Indexed by LhKernelId. */
extern const LhKernel *const lh_kernels[LH_KERNELS_COUNT];

/* Returns the id of the kernel called @name, or LH_KERNELS_COUNT. */
LhKernelId lh_kernel_find(const char *name);

/* Flops of a kernel that only moves or converts elements: 0. */
static inline uint64_t
lh_no_flops(const LhKernelArgs *args)
{
    (void)args;
    return 0;
}

/*
 * Whether a kernel's flops count as attention: softmax attention itself, and all of linear
 * attention.
 */
static inline bool
lh_kernel_counts_flops(const LhKernel *kernel)
{
    const uint32_t counted = 1u << LH_EFFECT_ATTEND | 1u << LH_EFFECT_ATTEND_GRAD |
                             1u << LH_EFFECT_SCORES | 1u << LH_EFFECT_SCORES_APPLY;

    return kernel->linear || (counted >> kernel->effect & 1) != 0;
}

/* Matrices of a product: one, or one per expert. */
static inline uint64_t
lh_product_matrices(const LhKernelArgs *a)
{
    return a->product.experts > 1 ? a->product.experts : 1;
}

/*
 * Shape of a product: @matrices results of rows x columns, each element a sum of @depth terms. For
 * experts with unequal shares, the shape of the largest.
 */
typedef struct {
    uint64_t matrices, rows, columns, depth;
} LhProductShape;

/* Matrices of LH_ARGS_MUON as they are orthogonalised, with at most as many rows as columns;
 * without depth. */
static inline LhProductShape
lh_muon_matrices(const LhKernelArgs *a)
{
    const uint64_t experts = a->muon.experts > 1 ? a->muon.experts : 1;
    const uint64_t halves = a->muon.halves > 1 ? a->muon.halves : 1;
    const uint64_t rows = a->muon.rows / experts, columns = a->muon.width / halves;

    return (LhProductShape){ .matrices = experts * halves,
                             .rows = rows < columns ? rows : columns,
                             .columns = rows < columns ? columns : rows };
}

/* Number of different slices that LH_ARGS_MUON has of a weight. */
static inline uint32_t
lh_muon_cuts(const LhKernelArgs *a)
{
    const uint32_t replicas = a->muon.replicas > 1 ? a->muon.replicas : 1;

    return a->muon.slices > replicas ? a->muon.slices / replicas : 1;
}

static inline LhProductShape
lh_muon_product(const LhKernel *kernel, const LhKernelArgs *a)
{
    LhProductShape shape = lh_muon_matrices(a);

    shape.depth = kernel->product == LH_PRODUCT_GRAM ? shape.columns : shape.rows;
    if (kernel->product != LH_PRODUCT_POLYNOMIAL)
        shape.columns = shape.rows;
    return shape;
}

static inline LhProductShape
lh_product_shape(const LhKernel *kernel, const LhKernelArgs *a)
{
    uint64_t matrices, m;

    if (kernel->args == LH_ARGS_MUON)
        return lh_muon_product(kernel, a);
    matrices = lh_product_matrices(a);
    m = (a->product.m + matrices - 1) / matrices;
    switch (kernel->product) {
    case LH_PRODUCT_DX:
        return (LhProductShape){ matrices, m, a->product.k, a->product.n };
    case LH_PRODUCT_DW:
        return (LhProductShape){ matrices, a->product.k, a->product.n, m };
    case LH_PRODUCT_Y:
    default:
        return (LhProductShape){ matrices, m, a->product.n, a->product.k };
    }
}

/* Whether a kernel's flops count as dense: products of activations with weights. */
static inline bool
lh_kernel_counts_dense_flops(const LhKernel *kernel)
{
    return kernel->cost == LH_COST_PRODUCT;
}

/*
 * Whether a call overwrites its operand @operand without reading it. `first` applies to sums only.
 * The weights of an optimizer step are none. For dx of a norm, rows.adds decides instead.
 */
static inline bool
lh_operand_is_overwritten(const LhKernel *kernel, const LhKernelArgs *args, unsigned operand)
{
    const LhOperand *o = &kernel->operands[operand];
    const bool by_rows = kernel->args == LH_ARGS_ROWS && o->kind == LH_TENSOR_HIDDEN;

    return o->access == LH_OPERAND_WRITE ||
           (o->access == LH_OPERAND_UPDATE && (by_rows ? !args->rows.adds : args->first));
}
