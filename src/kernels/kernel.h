/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernels. One row holds everything that anyone asks of a compute op but how a machine
 * computes it: its operands, exact flops and memory traffic, what it does to symbolic contents (for
 * the verifier) and how its time is modelled. Nobody switches on kernel names; a new kernel is one
 * row here, one function in each folder of a machine (cpu/), and one word in meson.build.
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
    LH_OPERAND_GIVEN,  /* an input of the program, left as it is: what the call stands for would
                          compute it, so that nobody uses it before */
} LhOperandAccess;

/* What an op does to the symbolic contents of its operands; the verifier has one rule for each. */
typedef enum {
    LH_EFFECT_ATTEND,      /* operands q, kv, acc..: every acc(q) += pairs(q, kv, mask) */
    LH_EFFECT_ATTEND_GRAD, /* operands q, do, stats.., kv, dq, dkv: both gradients += pairs(q, kv,
                              mask) */
    LH_EFFECT_ADD,         /* operands source.., target (last): target += source: merge of partial
                              attention, sum of gradients; an lse among the sources of an o is that
                              of all keys, which the others are weighed by */
    LH_EFFECT_DERIVE, /* operands source.. (READ), target.. (WRITE): every target = f(sources), same
                         tokens, same coverage: cast, normalise (acc -> o and lse), delta =
                         rowsum(do * o) */
    LH_EFFECT_ZERO,   /* operand target: an empty accumulator */
    /*
     * Linear attention. A state stands at the border between two segments and holds what lies
     * before it, decayed to the border; its gradient holds what lies behind. A border is named by
     * the segment behind it. Calls have nk rows when they work on states, nq on gradients.
     */
    LH_EFFECT_STATE_SUM,    /* operands rows.., state (last): takes in the rows, which it is moved
                               over */
    LH_EFFECT_STATE_CARRY,  /* operands before, state: state += before, moved over the call's rows
                             */
    LH_EFFECT_STATE_PREFIX, /* operands states, state: the sum of states that stand the call's rows
                               apart, in order, moved to the border of the one that lies ahead */
    LH_EFFECT_STATE_APPLY,  /* operands rows.., state, target (last): target += what the state has
                               taken in, which stands where the rows begin (gradients: end) */
    /* Scores that are written out. A part of them holds the rows of one segment of queries with the
     * keys of one segment. */
    LH_EFFECT_SCORES,       /* operands rows, keys, scores: scores = rows keys^T */
    LH_EFFECT_SOFTMAX,      /* operands scores, probs, lse: of all keys that the mask allows */
    LH_EFFECT_SOFTMAX_GRAD, /* operands probs, gradient of probs, that of scores: of all keys */
    LH_EFFECT_SCORES_APPLY, /* operands scores, keys, sum of their rows: sum += scores keys; or
                               scores, rows, sum of keys: sum += scores^T rows */
    /*
     * The layer around an attention module, whose products are not in its program: calls that take
     * no time and touch no memory, but say what comes from what. Of activations outside attention
     * a part is one rank's share of the tokens.
     */
    LH_EFFECT_PROJECT_IN,  /* operands hidden, inputs.. (GIVEN): these come from all shares of one
                              tensor */
    LH_EFFECT_PROJECT_OUT, /* operands results.., hidden: all shares of what comes from complete
                              results, as far as the rank's heads go: a term of a sum over ranks */
    LH_EFFECT_OUTSIDE,     /* operand hidden: the rest of the layer reads it */
    /*
     * The layer outside attention, computed: what such a call means for a step is said by the
     * step's own table. Here it reads and writes its operands, and no more is known.
     */
    LH_EFFECT_LAYER,
} LhEffect;

/* How a cost model times the kernel. */
typedef enum {
    LH_COST_ATTENTION, /* a rate that depends on block length, mask and head dimension */
    LH_COST_MEMORY,    /* memory traffic at memory bandwidth */
    LH_COST_GEMM,      /* products within attention: linear, or of scores that are written out */
    LH_COST_PRODUCT,   /* products of matrices, at the rate that large ones reach */
    LH_COST_OUTSIDE,   /* none: not part of what is timed */
} LhCostClass;

/* The element type that an operand must have; of a slot that is element_bytes. */
typedef enum {
    LH_ELEMENT_ACTIVATION,
    LH_ELEMENT_FP32,
    LH_ELEMENT_EITHER, /* the kernel has a version for each */
    LH_ELEMENT_OTHER,  /* activation if the first operand is fp32, fp32 if that is activation */
} LhElementRule;

typedef struct {
    const char *name; /* operand name for messages: "q", "kv", "acc" */
    LhOperandAccess access;
    LhTensorKind kind; /* LH_TENSOR_ANY: whichever, but all operands that say so the same */
    LhElementRule element;
} LhOperand;

/* What a product of LH_ARGS_PRODUCT computes. */
typedef enum {
    LH_PRODUCT_Y,  /* m x n, by sums over k */
    LH_PRODUCT_DX, /* m x k, over n */
    LH_PRODUCT_DW, /* k x n, over m */
} LhProductResult;

typedef struct {
    const char *name;    /* "attention_fwd" */
    const char *summary; /* one line */
    LhArgsKind args;
    LhEffect effect;
    LhCostClass cost;
    LhOperand operands[LH_KERNEL_OPERANDS_MAX + 1]; /* in op order, ended by LH_OPERAND_END */
    /* The kernel works in place: operand @written may be the very region of operand @read. All
     * others, and those of other kernels (0, 0), are apart: elements may be computed in any order.
     */
    struct {
        uint8_t read, written;
    } in_place;
    /* Exact floating-point operations of the call, in the field's convention (2 per multiply-add).
     */
    uint64_t (*flops)(const LhKernelArgs *args);
    /* Bytes read and written in device memory by the call; @element_bytes is the activation's. */
    uint64_t (*memory_bytes)(const LhKernelArgs *args, uint32_t element_bytes);
    /*
     * Elements that a call's operand @operand holds, over all of its parts. NULL where that follows
     * from the attention's shape and the segments that the parts hold.
     */
    uint64_t (*operand_elements)(const LhKernelArgs *args, unsigned operand);
    LhProductResult product; /* of LH_ARGS_PRODUCT */
    bool linear;             /* of linear attention, and only for that */
} LhKernel;

typedef enum {
#define LH_KERNEL(id) LH_KERNEL_ID_##id,
#include "kernels.def"
#undef LH_KERNEL
    LH_KERNELS_COUNT
} LhKernelId;

/* Indexed by LhKernelId. */
extern const LhKernel *const lh_kernels[LH_KERNELS_COUNT];

/* The id of the kernel called @name, or LH_KERNELS_COUNT. */
LhKernelId lh_kernel_find(const char *name);

/* The flops of a kernel that only moves elements, or converts them. */
static inline uint64_t
lh_no_flops(const LhKernelArgs *args)
{
    (void)args;
    return 0;
}

/* Whether a kernel's flops count as attention: softmax attention itself, and all of linear
 * attention. */
static inline bool
lh_kernel_counts_flops(const LhKernel *kernel)
{
    const uint32_t counted = 1u << LH_EFFECT_ATTEND | 1u << LH_EFFECT_ATTEND_GRAD |
                             1u << LH_EFFECT_SCORES | 1u << LH_EFFECT_SCORES_APPLY;

    return kernel->linear || (counted >> kernel->effect & 1) != 0;
}

/* Matrices of a product: one, or one for each expert. */
static inline uint64_t
lh_product_matrices(const LhKernelArgs *a)
{
    return a->product.experts > 1 ? a->product.experts : 1;
}

/* So many results of rows x columns, each number of which is a sum of `depth`; of experts that
 * cannot have equal shares, those of the largest. */
typedef struct {
    uint64_t matrices, rows, columns, depth;
} LhProductShape;

static inline LhProductShape
lh_product_shape(const LhKernel *kernel, const LhKernelArgs *a)
{
    const uint64_t matrices = lh_product_matrices(a);
    const uint64_t m = (a->product.m + matrices - 1) / matrices;

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

/* Whether a kernel's flops count as dense ones: products of activations with weights. */
static inline bool
lh_kernel_counts_dense_flops(const LhKernel *kernel)
{
    return kernel->cost == LH_COST_PRODUCT;
}

/*
 * Whether a call overwrites its operand @operand without reading it. `first` is about sums, which
 * the weights of a step of the optimizer are not, and dx of a norm only if nothing else is in it.
 */
static inline bool
lh_operand_is_overwritten(const LhKernel *kernel, const LhKernelArgs *args, unsigned operand)
{
    const LhOperand *o = &kernel->operands[operand];
    const bool by_rows = kernel->args == LH_ARGS_ROWS && o->kind == LH_TENSOR_HIDDEN;

    return o->access == LH_OPERAND_WRITE ||
           (o->access == LH_OPERAND_UPDATE && (by_rows ? !args->rows.adds : args->first));
}
