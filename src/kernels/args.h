/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels are called with, and the table of kinds of arguments. A kind is a member of the
 * union below and one row of the table, which lists its members: whoever reads, writes, compares or
 * hashes arguments goes by that list, and does not switch on kinds.
 */
#pragma once

#include "model/mask.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    LH_ARG_U64,
    LH_ARG_I64,
    LH_ARG_U32,
    LH_ARG_U8,
    LH_ARG_I8,
    LH_ARG_BOOL,
    LH_ARG_F64,
    LH_ARG_RULE, /* a pointer to a LhMaskRule, which may be NULL */
} LhArgType;

/* A member of one kind of arguments; `first` belongs to all kinds and is in no list. */
typedef struct {
    const char *name; /* in programs in files */
    LhArgType type;
    size_t offset; /* in LhKernelArgs */
    bool needed;   /* there is no call for which it is 0 */
} LhArgMember;

typedef struct {
    const LhArgMember *members; /* in the order in which they are written, ended by a NULL name */
    /* Whether flops and bytes of a call, by whatever kernel, can be counted in 64 bits. NULL: any
     * do. If not, the member to blame is `limited`, and the message `limit`. */
    bool (*fits)(const LhKernelArgs *args);
    const char *limited, *limit;
    size_t traffic; /* offset of the bytes that are moved for each element; 0: there are none */
    /* How many elements that is about. NULL: those that the kernel's operands have. */
    uint64_t (*traffic_elements)(const LhKernelArgs *args);
} LhArgsRow;

/* Indexed by LhArgsKind. */
extern const LhArgsRow lh_args_rows[LH_ARGS_KINDS];

/* The member called @name, or NULL. */
const LhArgMember *lh_args_member(LhArgsKind kind, const char *name);

/* Bytes that are moved for each element, as far as the arguments say so; 0: they do not. */
uint64_t lh_args_traffic(LhArgsKind kind, const LhKernelArgs *args);

/* Members that hold unsigned numbers, or are true or false. */
uint64_t lh_arg_uint(const LhArgMember *member, const LhKernelArgs *args);
void lh_arg_put_uint(const LhArgMember *member, LhKernelArgs *args, uint64_t value);

/* Those of LH_ARG_F64. */
double lh_arg_real(const LhArgMember *member, const LhKernelArgs *args);
void lh_arg_put_real(const LhArgMember *member, LhKernelArgs *args, double value);

/* Whether two calls of kernels of this kind have the same arguments. */
bool lh_kernel_args_equal(LhArgsKind kind, const LhKernelArgs *a, const LhKernelArgs *b);

/* Mixes into @hash what a call of a kernel of this kind is called with: the members of its kind,
 * one by one, since what else is in the union, or between members, is anything. */
uint64_t lh_kernel_args_mix(uint64_t hash, LhArgsKind kind, const LhKernelArgs *args);
