/*
 * The table of kernels. One row holds everything that anyone asks of a compute op but how a machine
 * computes it: its operands, exact flops and memory traffic, what it does to symbolic contents (for
 * the verifier) and how its time is modelled. Nobody switches on kernel names; a new kernel is one
 * row here, one function in each folder of a machine (cpu/), and one word in meson.build.
 */
#pragma once

#include "kernels/tensor.h"
#include "model/mask.h"

#include <stdbool.h>
#include <stdint.h>

#define LH_KERNEL_OPERANDS_MAX 8

/* Which (query, key) pairs of a block exist, in local indices i (query row) and j (key row). */
typedef enum {
    LH_MASK_EMPTY,
    LH_MASK_FULL,
    LH_MASK_CAUSAL,    /* j <= i + shift, shift 0 or -1; parts count as laid end to end */
    LH_MASK_POSITIONS, /* those that the sequence's rule allows at the rows' token positions */
} LhMaskKind;

/*
 * Where the rows of an operand stand in the sequence, for LH_MASK_POSITIONS: row i of part p is
 * token start + p * part_step + i * stride. The stride is the same for queries and keys.
 */
typedef struct {
    int64_t start;
    int64_t part_step;
} LhRowsPosition;

/*
 * How rows of activations outside attention go with tensors of attention. Outside, parts are
 * segments x members, each [batch][rows]: a segment's rows are cut among `members` ranks in a row
 * (tensor parallelism with sequence parallelism), and each part has one rank's. A tensor of
 * attention has parts segments x slices, each [batch][rows x members][heads of the slice][d], with
 * k before v.
 */
typedef struct {
    uint32_t batch;   /* sequences */
    uint32_t members; /* >= 1 */
} LhHeadsLayout;

/* Which arguments a kernel takes. */
typedef enum {
    LH_ARGS_ATTENTION, /* attention, and what touches every element of its tensors once */
    LH_ARGS_PRODUCT,   /* a product of matrices */
    LH_ARGS_ELEMENTS,  /* what touches every element of tensors outside attention once */
    LH_ARGS_ROWS,      /* the same, by rows: norms, embeddings, the loss */
    LH_ARGS_HEADS,     /* between rows outside attention and tensors by heads */
    LH_ARGS_EXPERTS,   /* rows on their way to experts and back */
    LH_ARGS_OPTIMIZER, /* what touches every parameter of a shard once */
    LH_ARGS_NONE,      /* what stands for work outside the attention module */
    LH_ARGS_KINDS
} LhArgsKind;

/* What a kernel is called with. The operands themselves (slot regions) stand beside it in the op.
 */
typedef struct {
    union {
        struct {             /* LH_ARGS_ATTENTION */
            uint64_t pairs;  /* exact (query, key) pairs of one sequence and head under the mask */
            uint64_t nq;     /* query rows (attention) or token rows (elementwise), per sequence */
            uint64_t nk;     /* key rows; 0 where there are none */
            uint32_t batch;  /* B */
            uint32_t heads;  /* query heads */
            uint32_t groups; /* key-value heads */
            uint32_t head_dim;         /* d */
            LhRowsPosition q_at, k_at; /* of LH_MASK_POSITIONS, as are stride and rule */
            uint64_t stride;
            const LhMaskRule *rule; /* borrowed from the program */
            double scale;           /* of the logits; 0 means 1/sqrt(d) */
            double decay;           /* linear attention: lambda of one token; 0 means none */
            uint32_t states;  /* of linear_prefix: how many it adds up, the first operand's parts */
            uint32_t traffic; /* of softmax on scores that are written out: bytes moved for each of
                                 them; 0: every operand once */
            uint8_t mask;     /* LhMaskKind */
            int8_t shift;     /* of LH_MASK_CAUSAL: 0 or -1 */
            bool reversed;    /* copy, cast, add_to_fp32: part i of the target goes with part i from
                                 the end of the source */
        };
        /*
         * Forward m x k times k x n; its gradients have the same m, n, k. Of `experts`, each has
         * those of the m rows that an operand says, and a matrix of its own; its time is that of
         * equal shares. 0 and 1: one matrix. An operand
         * that is a tensor of attention (o, do) has its parts by segments and slices of the heads;
         * its rows are those of the other operand as said at LhHeadsLayout.
         */
        struct {
            uint64_t m, n, k;
            uint32_t experts;
            LhHeadsLayout layout;
        } product;
        struct {
            uint64_t count;
            uint32_t traffic; /* bytes moved for each element; 0: every operand once */
        } elements;
        /* `rows` rows of `width` elements, those of the forward call's output. */
        struct {
            uint64_t rows, width;
            uint64_t vocabulary; /* of embeddings and the loss: rows of the table, of which ... */
            uint64_t first;      /* ... the call has those from here on, `width` (loss) or ... */
            uint64_t count;      /* ... `count` (embeddings) of them */
            uint64_t tokens;     /* of the loss: those that it is the mean over, of all ranks */
            double epsilon;      /* of norms */
            uint32_t traffic;    /* as above */
            bool adds;           /* gradients of norms: dx is added to; `first` is about dw alone */
        } rows;
        /* Rotary embedding, or with a base of 0 only the change of layout, of one segment. */
        struct {
            uint64_t rows;          /* of the segment, in one sequence */
            uint64_t start, stride; /* the first one's position in the sequence, and from one to the
                                       next */
            double base;            /* theta; 0: no rotation */
            LhHeadsLayout layout;
            uint32_t heads, groups, head_dim;
            uint32_t traffic; /* as above, for each element of the row */
        } to_heads;
        /* `rows` rows of `width` elements, each of which goes to `choices` of `experts`. */
        struct {
            uint64_t rows, width;
            uint32_t experts, choices;
        } experts;
        struct {
            uint64_t count;
            double learning_rate, beta1, beta2, epsilon, weight_decay;
            double clip;      /* the largest norm that gradients may have; 0: any */
            uint32_t traffic; /* as above */
        } optimizer;
    };
    bool first; /* accumulators start here (and are overwritten); of the optimizer, its clock and
                   moments */
} LhKernelArgs;

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

/* Mixes into @hash what a call of a kernel of this kind is called with: the members of its kind,
 * one by one, since what else is in the union, or between members, is anything. */
uint64_t lh_kernel_args_mix(uint64_t hash, LhArgsKind kind, const LhKernelArgs *args);

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
