/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common part of schedules that exchange heads for tokens. U consecutive ranks form a group. Before
 * attention an all-to-all gives each member the tokens of the whole group for its slices of the
 * heads; after attention another one returns the heads of every token to its owner. Tensors have
 * two layouts: by tokens (the rank's own segments, all slices) and by heads (all segments of the
 * group in token order, the rank's slices). Converting between them takes a copy and a staging
 * buffer besides the all-to-all, like permute() and contiguous() in public code.
 *
 * Tensors that the forward pass saves for the backward pass (q, k, v, o and lse; q, k, v for linear
 * attention) stay by heads, so that the backward pass moves only gradients. A backward pass alone
 * takes them by heads, too.
 *
 * k and v are one tensor, like dk and dv, and are sent together. With --published-code they are
 * sent one after the other, each as one half of that tensor; the copies before and after still
 * cover both.
 */
#pragma once

#include "program/holding.h"
#include "sched/common/pass.h"

extern const LhOption lh_option_hierarchy; /* --hierarchical-context-parallel-sizes */
extern const LhOption lh_option_pad_heads;
extern const LhOption lh_option_te_version;

/* Choices of --te-version: TransformerEngine releases since which the backward pass sends less.
 * Each covers the releases up to the next choice. */
typedef enum {
    LH_TE_2_15, /* a2a+p2p does not send o again */
    LH_TE_2_8,  /* a2a does not send o again */
    LH_TE_2_7,  /* and earlier: both send it */
} LhTeVersion;

static inline LhTeVersion
lh_heads_te_version(const LhProgramParams *p)
{
    return (LhTeVersion)lh_option_first(p, &lh_option_te_version);
}

/* U, the number of ranks that exchange heads with each other; 0 if not chosen yet. */
static inline uint32_t
lh_heads_size(const LhProgramParams *p)
{
    return lh_option_first(p, &lh_option_hierarchy);
}

static inline bool
lh_heads_padded(const LhProgramParams *p)
{
    return lh_option_first(p, &lh_option_pad_heads) != 0;
}

/* The tensors moved by all-to-alls. */
typedef enum {
    LH_HEADS_Q,
    LH_HEADS_KV,
    LH_HEADS_O,
    LH_HEADS_DO,
    LH_HEADS_DQ,
    LH_HEADS_DKV,
    LH_HEADS_TENSORS,
} LhHeadsTensor;

/* Whether it is k and v, or their gradients. */
static inline bool
lh_heads_is_kv(LhHeadsTensor t)
{
    return t == LH_HEADS_KV || t == LH_HEADS_DKV;
}

/*
 * How heads are split into slices for a group. If slices do not divide evenly, every rank allocates
 * room for the largest share. If there are fewer key-value slices than ranks, several ranks have
 * the same one, and the all-to-all moves one replica for each.
 */
typedef struct {
    uint32_t members;           /* U */
    uint32_t slices, kv_slices; /* of query heads (a multiple of kv_slices), of key-value heads */
} LhHeadsCut;

/* Source of o in the backward pass. */
typedef enum {
    LH_HEADS_O_KEPT,     /* by heads, as left by the forward pass */
    LH_HEADS_O_GATHERED, /* by tokens; sent again */
    LH_HEADS_O_UNUSED,   /* not needed: linear attention */
} LhHeadsOutput;

typedef struct _LhHeads LhHeads;

/* Moves tensors from one layout to the other. Compute queued later waits for them. */
typedef void (*LhHeadsMove)(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                            unsigned count, bool to_heads);

/* Part of a schedule's plan. In a group of one rank nothing moves, and both layouts are the same
 * slot. */
struct _LhHeads {
    LhHeadsCut cut;
    LhHeadsMove move; /* one of the functions of heads_moves.h */
    bool two_stages;  /* received data has its own buffer, `arrived` */
    LhHeadsOutput o;
    bool apart;        /* k and v, and dk and dv, each have their own call */
    bool grads_narrow; /* all-to-alls send gradients in the activation type, whatever
                          --gradient-wire */
    uint32_t parts;    /* parts of one slice by heads: the segments of the group */
    uint16_t tokens[LH_HEADS_TENSORS], stage[LH_HEADS_TENSORS], arrived[LH_HEADS_TENSORS],
        heads[LH_HEADS_TENSORS];
    uint16_t lse;           /* by heads; softmax only */
    uint16_t dkv_sum;       /* by tokens, in fp32: the sum over replicas */
    LhKernelArgs attention; /* arguments, for groups that hold the whole sequence */

    /* Emits step @step of attention in the current phase, between the all-to-alls. */
    void (*attend)(LhEmitter *e, uint32_t step);
    uint32_t forward_steps, backward_steps;
};

/*
 * Completes @heads, in which the caller has set the members before `parts`. Declares streams,
 * inputs and outputs as lh_pass_declare does (except lse by tokens, which nothing reads), the slots
 * by heads, and staging buffers.
 */
void lh_heads_declare(LhProgram *program, LhHeads *heads);

/* The slots by heads, which attention works on. */
LhPassSlots lh_heads_slots(const LhHeads *heads);

static inline bool
lh_heads_replicated(const LhHeadsCut *cut)
{
    return cut->kv_slices < cut->members;
}

static inline bool
lh_heads_uneven(const LhHeadsCut *cut)
{
    return cut->slices % cut->members != 0;
}

/* The number of tensors that the backward pass sends before attention: do, and perhaps o. */
static inline unsigned
lh_heads_gathered(const LhHeads *heads)
{
    return heads->o == LH_HEADS_O_GATHERED ? 2 : 1;
}

/* Arguments of attention over all tokens of the sequence, in @parts parts, for one slice. */
LhKernelArgs lh_heads_attention_args(const LhProgram *program, uint32_t parts);

/* For groups that hold the whole sequence: attention is one step that computes the rank's slices
 * one after the other. */
void lh_heads_set_whole(const LhProgram *program, LhHeads *heads);

/* Makes @heads the whole plan of a schedule in which all ranks are one group. */
void lh_heads_declare_whole(LhProgram *program, const LhHeads *heads);

/* Generator of schedules whose plan begins with an LhHeads: moves tensors to the layout by
 * heads, computes attention, and moves the results back. While attention runs, o and lse
 * (backward: dq and dkv) are allocated by heads. */
uint32_t lh_heads_steps(const LhProgram *program, uint32_t rank);
void lh_heads_emit(LhEmitter *e, uint32_t step);
