/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of kernels, and the table of kinds of arguments. A kind is a member of the union below
 * and one row of the table, which lists its members. Code that reads, writes, compares or hashes
 * arguments uses that list and does not switch on kinds.
 */
#pragma once

#include "model/mask.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* (query, key) pairs of a block, in local indices i (query row) and j (key row). */
typedef enum {
    LH_MASK_EMPTY,
    LH_MASK_FULL,
    LH_MASK_CAUSAL,    /* j <= i + shift, shift 0 or -1; parts are concatenated */
    LH_MASK_POSITIONS, /* pairs that the sequence's rule allows at the rows' token positions */
} LhMaskKind;

/*
 * Token positions of an operand's rows, for LH_MASK_POSITIONS: row i of part p is token start + p *
 * part_step + i * stride. Queries and keys have the same stride.
 */
typedef struct {
    int64_t start;
    int64_t part_step;
} LhRowsPosition;

/*
 * Mapping between rows of activations outside attention and tensors of attention. Outside, the
 * parts are segments x members, each [batch][rows]: a segment's rows are divided among `members`
 * consecutive ranks (tensor parallelism with sequence parallelism), and each part holds one rank's
 * rows. A tensor of attention has parts segments x slices, each [batch][rows x members][heads of
 * the slice][d], k before v.
 */
typedef struct {
    uint32_t batch;   /* sequences */
    uint32_t members; /* >= 1 */
} LhHeadsLayout;

/* Kind of arguments that a kernel takes. */
typedef enum {
    LH_ARGS_ATTENTION, /* attention, and passes over its tensors */
    LH_ARGS_PRODUCT,   /* a matrix product */
    LH_ARGS_ELEMENTS,  /* elementwise passes over tensors outside attention */
    LH_ARGS_ROWS,      /* the same by rows: norms, embeddings, the loss */
    LH_ARGS_HEADS,     /* between rows outside attention and tensors by heads */
    LH_ARGS_EXPERTS,   /* dispatch of rows to experts, and combine */
    LH_ARGS_OPTIMIZER, /* passes over the parameters of a shard */
    LH_ARGS_MUON,      /* orthogonalisation of whole matrices */
    LH_ARGS_COPY,      /* copies between device and host */
    LH_ARGS_NONE,      /* placeholders for work outside the attention module */
    LH_ARGS_KINDS
} LhArgsKind;

/* Arguments of a kernel. The op holds the operands (slot regions). */
typedef struct {
    union {
        struct {             /* LH_ARGS_ATTENTION */
            uint64_t pairs;  /* exact (query, key) pairs of one sequence and head under the mask */
            uint64_t nq;     /* query rows (attention) or token rows (elementwise), per sequence */
            uint64_t nk;     /* key rows; 0 if the call has none */
            uint32_t batch;  /* B */
            uint32_t heads;  /* query heads */
            uint32_t groups; /* key-value heads */
            uint32_t head_dim;         /* d */
            LhRowsPosition q_at, k_at; /* for LH_MASK_POSITIONS, as are stride and rule */
            uint64_t stride;
            const LhMaskRule *rule; /* borrowed from the program */
            double scale;           /* of the logits; 0 means 1/sqrt(d) */
            double decay;           /* linear attention: lambda of one token; 0 means none */
            uint32_t states;  /* of linear_prefix: states to sum, parts of the first operand */
            uint32_t traffic; /* of softmax on scores in memory: bytes moved per score; 0: every
                                 operand once */
            uint8_t mask;     /* LhMaskKind */
            int8_t shift;     /* of LH_MASK_CAUSAL: 0 or -1 */
            bool reversed;    /* copy, cast, add_to_fp32: part i of the target takes part i from
                                 the end of the source */
        };
        /*
         * Forward m x k times k x n; its gradients have the same m, n, k. With `experts`, an
         * operand gives the rows (of m) of each expert, and each has its own matrix; the time is
         * that of equal shares. 0 and 1: one matrix. An operand that is a tensor of attention (o,
         * do) has its parts by segments and slices of the heads; LhHeadsLayout maps its rows to
         * those of the other operand.
         */
        struct {
            uint64_t m, n, k;
            uint32_t experts;
            LhHeadsLayout layout;
            bool fp32; /* multiplied in fp32, without matrix units: same result, other time */
        } product;
        struct {
            uint64_t count;
            uint32_t traffic; /* bytes moved per element; 0: every operand once */
        } elements;
        /* `rows` rows of `width` elements, those of the forward call's output. */
        struct {
            uint64_t rows, width;
            uint64_t vocabulary; /* of embeddings and the loss: rows of the whole table */
            uint64_t first;      /* the call's first row of it; it has `width` rows (loss) or ... */
            uint64_t count;      /* ... `count` rows (embeddings); of last_rows: rows of a
                                    sequence */
            uint64_t tokens;     /* of the loss: tokens of all ranks, over which it is the mean */
            double epsilon;      /* of norms */
            uint32_t traffic;    /* as above */
            bool adds;           /* norm gradients: dx accumulates; `first` applies to dw only */
        } rows;
        /* Rotary embedding of one segment; with base 0 only the change of layout. */
        struct {
            uint64_t rows;          /* of the segment, per sequence */
            uint64_t start, stride; /* position of the first row in the sequence, and the
                                       distance of consecutive rows */
            double base;            /* theta; 0: no rotation */
            LhHeadsLayout layout;
            uint32_t heads, groups, head_dim;
            uint32_t traffic; /* as above, per element of the row */
        } to_heads;
        /* `rows` rows of `width` elements, each sent to `choices` of `experts` experts. */
        struct {
            uint64_t rows, width;
            uint32_t experts, choices;
        } experts;
        struct {
            uint64_t count;
            double learning_rate, beta1, beta2, epsilon, weight_decay;
            double clip;      /* maximum norm of the gradients; 0: no clipping */
            uint32_t traffic; /* as above */
        } optimizer;
        /* Matrices of a weight of `rows` x `width`, in `experts` blocks of rows (0 and 1: one) and
         * `halves` blocks of columns (likewise): each block is a matrix. */
        struct {
            uint64_t rows, width;
            uint32_t experts, halves;
            /* Slices that are joined, of which `replicas` consecutive ones are the same (0 and 1:
             * one): of each matrix's columns, or of its rows; and the rank's own one. */
            uint32_t slices, replicas, slice;
            bool by_rows;
            double a, b, c; /* coefficients of the step */
            double factor;  /* of the result */
        } muon;
        struct {
            uint64_t bytes; /* of each operand */
            uint64_t
                beside; /* further bytes that move with them, of memory without a slot region */
        } copy;
    };
    bool first; /* accumulators start here (and are overwritten); for the optimizer, its clock
                   and moments */
} LhKernelArgs;

typedef enum {
    LH_ARG_U64,
    LH_ARG_I64,
    LH_ARG_U32,
    LH_ARG_U8,
    LH_ARG_I8,
    LH_ARG_BOOL,
    LH_ARG_F64,
    LH_ARG_RULE, /* a pointer to a LhMaskRule, which may be NULL */
} LhArgType;

/* A member of one kind of arguments. `first` belongs to all kinds and is in no list. */
typedef struct {
    const char *name; /* key in program files */
    LhArgType type;
    size_t offset; /* in LhKernelArgs */
    bool needed;   /* 0 is not allowed */
} LhArgMember;

typedef struct {
    const LhArgMember *members; /* in the order of writing, ended by a NULL name */
    /*
     * Whether flops and bytes of a call of any kernel fit in 64 bits. NULL: always. If not,
     * @limited names the member to report, @limit is the message.
     */
    bool (*fits)(const LhKernelArgs *args);
    const char *limited, *limit;
    size_t traffic; /* offset of the bytes moved per element; 0: none */
    /* Elements that @traffic applies to. NULL: those of the kernel's operands. */
    uint64_t (*traffic_elements)(const LhKernelArgs *args);
} LhArgsRow;

/* Indexed by LhArgsKind. */
extern const LhArgsRow lh_args_rows[LH_ARGS_KINDS];

/* Returns the member called @name, or NULL. */
const LhArgMember *lh_args_member(LhArgsKind kind, const char *name);

/* Returns the bytes moved per element that the arguments give, or 0 if they give none. */
uint64_t lh_args_traffic(LhArgsKind kind, const LhKernelArgs *args);

/* Read and write members that are unsigned or boolean. */
uint64_t lh_arg_uint(const LhArgMember *member, const LhKernelArgs *args);
void lh_arg_put_uint(const LhArgMember *member, LhKernelArgs *args, uint64_t value);

/* Read and write members of LH_ARG_F64. */
double lh_arg_real(const LhArgMember *member, const LhKernelArgs *args);
void lh_arg_put_real(const LhArgMember *member, LhKernelArgs *args, double value);

/* Whether two calls of kernels of this kind have equal arguments. */
bool lh_kernel_args_equal(LhArgsKind kind, const LhKernelArgs *a, const LhKernelArgs *b);

/*
 * Mixes the arguments of a call of this kind into @hash, member by member: other bytes of the union
 * and padding are undefined.
 */
uint64_t lh_kernel_args_mix(uint64_t hash, LhArgsKind kind, const LhKernelArgs *args);
