/*
 * What schedules that exchange heads for tokens share. U consecutive ranks form a group. Before
 * attention an all-to-all gives each member the tokens of the whole group for its slices of the
 * heads; after attention another one returns the heads of every token to its owner. Tensors have
 * two layouts: by tokens (the rank's own segments, all slices) and by heads (all segments of the
 * group in the order of tokens, the rank's slices). Converting one into the other takes a copy and
 * a staging buffer besides the all-to-all, as permute() and contiguous() do in public code.
 *
 * What the forward pass saves for the backward pass (q, k, v, o and lse; q, k, v of linear
 * attention) stays by heads, so that the backward pass moves only gradients. A backward pass alone
 * is given it by heads, too.
 *
 * k and v are one tensor, as dk and dv are, and travel together. With --published-code they travel
 * one after the other, each as one half of that tensor. The copies before and behind stay of both.
 */
#pragma once

#include "program/holding.h"
#include "sched/common/pass.h"

extern const LhOption lh_option_hierarchy; /* --hierarchical-context-parallel-sizes */
extern const LhOption lh_option_pad_heads;
extern const LhOption lh_option_te_version;

/* The choices of --te-version: releases of TransformerEngine in which the backward pass began to
 * send less. Each stands for all that follow it up to the next. */
typedef enum {
    LH_TE_2_15, /* a2a+p2p does not send o again */
    LH_TE_2_8,  /* a2a does not send o again */
    LH_TE_2_7,  /* and before: both send it */
} LhTeVersion;

static inline LhTeVersion
lh_heads_te_version(const LhProgramParams *p)
{
    return (LhTeVersion)lh_option_first(p, &lh_option_te_version);
}

/* U, the number of ranks that exchange heads with each other; 0 if it is not chosen yet. */
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

/* The tensors that all-to-alls move. */
typedef enum {
    LH_HEADS_Q,
    LH_HEADS_KV,
    LH_HEADS_O,
    LH_HEADS_DO,
    LH_HEADS_DQ,
    LH_HEADS_DKV,
    LH_HEADS_TENSORS,
} LhHeadsTensor;

/*
 * How heads are cut into slices for a group. If slices do not divide evenly, every rank has room
 * for as many as any rank has. If there are fewer key-value slices than ranks, several ranks have
 * the same one, and the all-to-all moves one replica for each.
 */
typedef struct {
    uint32_t members;           /* U */
    uint32_t slices, kv_slices; /* of query heads (a multiple of the other), of key-value heads */
} LhHeadsCut;

/* Where the backward pass gets o from. */
typedef enum {
    LH_HEADS_O_KEPT,     /* by heads, as the forward pass has left it */
    LH_HEADS_O_GATHERED, /* by tokens; it is sent again */
    LH_HEADS_O_UNUSED,   /* nowhere: linear attention needs none */
} LhHeadsOutput;

typedef struct _LhHeads LhHeads;

/* Moves tensors from one layout to the other. Compute that is queued later waits for them. */
typedef void (*LhHeadsMove)(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                            unsigned count, bool to_heads);

/* A part of a schedule's plan. In a group of one rank nothing moves, and both layouts are the same
 * slot. */
struct _LhHeads {
    LhHeadsCut cut;
    LhHeadsMove move; /* one of the two below */
    bool two_stages;  /* what arrives has a buffer of its own, `arrived`, too */
    LhHeadsOutput o;
    bool apart;        /* k and v, and dk and dv, each travel in a call of their own */
    bool grads_narrow; /* all-to-alls send gradients as activations, whatever --gradient-wire */
    uint32_t parts;    /* parts of one slice by heads: the segments of the group */
    uint16_t tokens[LH_HEADS_TENSORS], stage[LH_HEADS_TENSORS], arrived[LH_HEADS_TENSORS],
        heads[LH_HEADS_TENSORS];
    uint16_t lse;           /* by heads; softmax only */
    uint16_t dkv_sum;       /* by tokens, in fp32: the sum over replicas */
    LhKernelArgs attention; /* arguments, for groups that hold the whole sequence */

    /* Emits step @step of attention in the current phase, between the exchanges. */
    void (*attend)(LhEmitter *e, uint32_t step);
    uint32_t forward_steps, backward_steps;
};

/*
 * Fills in @heads, in which the caller has set the members before `parts`, and declares streams,
 * inputs and outputs as lh_pass_declare does (but no lse by tokens, which nobody needs), the slots
 * by heads, and staging buffers.
 */
void lh_heads_declare(LhProgram *program, LhHeads *heads);

/* The slots by heads, on which attention works. */
LhPassSlots lh_heads_slots(const LhHeads *heads);

/* The number of slices of query heads that @rank has by heads. */
uint32_t lh_heads_own(const LhHeadsCut *cut, uint32_t rank);

/* Sizes of a rank's tensors by tokens, with gradients as they are exchanged. */
LhPassSizes lh_heads_sizes(const LhProgramParams *p, const LhHeads *heads);

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

/* Number of tensors that the backward pass sends before attention: do, and perhaps o. */
static inline unsigned
lh_heads_gathered(const LhHeads *heads)
{
    return heads->o == LH_HEADS_O_GATHERED ? 2 : 1;
}

/* Lays out each tensor, sends it, and waits for it before the next one. */
void lh_heads_move_one_by_one(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                              unsigned count, bool to_heads);

/*
 * As TransformerEngine does: while a tensor is sent, the next one is laid out, and the one before
 * is put into the order of its tokens on a second compute stream, which the caller declares as the
 * stream after those of lh_pass_declare. For zigzag half-chunks without a split, and without
 * replicas.
 */
#define LH_HEADS_STREAM_CP 2
void lh_heads_move_pipelined(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                             unsigned count, bool to_heads);

/* Arguments of attention over all tokens of the sequence, in @parts parts, for one slice. */
LhKernelArgs lh_heads_attention_args(const LhProgram *program, uint32_t parts);

/* For groups that hold the whole sequence: attention is one step, which computes the rank's slices
 * one after the other. */
void lh_heads_set_whole(const LhProgram *program, LhHeads *heads);

/* Makes @heads the whole plan of a schedule in which all ranks are one group. */
void lh_heads_declare_whole(LhProgram *program, const LhHeads *heads);

/* The generator of schedules whose plan begins with an LhHeads: it moves tensors to the layout by
 * heads, computes attention, and moves the results back. While attention runs, o and lse (backward:
 * dq and dkv) are allocated by heads. */
uint32_t lh_heads_steps(const LhProgram *program, uint32_t rank);
void lh_heads_emit(LhEmitter *e, uint32_t step);

/* Flops of attention if all ranks are one group, and if groups form zigzag rings. */
uint64_t lh_heads_whole_flops(const LhProgramParams *p, const LhHeads *heads, uint32_t rank);
uint64_t lh_heads_ring_flops(const LhProgramParams *p, uint32_t rank);

/* The flops of attention of @heads query heads among all tokens, softmax or linear, in the passes
 * that are run. */
uint64_t lh_heads_flops(const LhProgramParams *p, uint32_t heads);

/* Bytes that a rank sends in all-to-alls. */
uint64_t lh_heads_bytes_sent(const LhProgramParams *p, const LhHeads *heads, uint32_t rank);

/* Bytes of the buffers that attention has in each pass; `kept` are those of them that stay between
 * the passes. */
typedef struct {
    uint64_t forward, backward, kept;
} LhHeadsBuffers;

/* Peak memory of a rank. @buffers NULL: attention has no buffers. */
uint64_t lh_heads_peak_bytes(const LhProgramParams *p, const LhHeads *heads,
                             const LhHeadsBuffers *buffers);

/* Defines the closed forms WORD_bytes_sent, WORD_flops and WORD_peak_bytes of a schedule of one
 * group of all ranks, whose LhHeads are HEADS_OF(params). */
#define LH_HEADS_WHOLE_FORMS(WORD, HEADS_OF)                                                       \
    static uint64_t WORD##_bytes_sent(const LhProgramParams *p, uint32_t rank)                     \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        return lh_heads_bytes_sent(p, &heads, rank);                                               \
    }                                                                                              \
                                                                                                   \
    static uint64_t WORD##_flops(const LhProgramParams *p, uint32_t rank)                          \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        return lh_heads_whole_flops(p, &heads, rank);                                              \
    }                                                                                              \
                                                                                                   \
    static uint64_t WORD##_peak_bytes(const LhProgramParams *p, uint32_t rank)                     \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        (void)rank;                                                                                \
        return lh_heads_peak_bytes(p, &heads, NULL);                                               \
    }

/* Pads heads and groups so that @ranks ranks can share them; the hidden size stays the same. With
 * @replicate several ranks may share a key-value head. */
void lh_heads_pad(LhAttention *attention, uint32_t ranks, bool replicate);

/* "3, 4": the numbers of ranks nearest to @ranks that @legal allows. Caller frees. */
char *lh_heads_nearest_ranks(const LhAttention *a, uint32_t ranks,
                             bool (*legal)(const LhAttention *a, uint32_t ranks));

/* Schedules with groups. The default size of a group is the largest that divides ranks, groups and
 * the GPUs of a node, if they are known. adapt pads heads and sets that default; check refuses a
 * size that does not divide ranks and groups. */
uint32_t lh_heads_group_size(const LhProgramParams *p);
void lh_heads_adapt_group_size(LhProgramParams *p);
bool lh_heads_check_group_size(const LhProgramParams *p, GError **error);
