/*
 * What schedules share that exchange heads for tokens. Ranks stand in groups of U in a row. Before
 * attention an all-to-all gives each of them, for its slices of the heads, the tokens of the whole
 * group; after it another one gives every token's heads back to its owner. Tensors have two
 * layouts: by tokens (the rank's own segments, all slices) and by heads (all segments of the group
 * in the order of tokens, the rank's slices). Between the two they are laid out once more, which
 * costs a copy and a staging buffer, as permute() and contiguous() do in public code.
 *
 * What forward leaves for backward (q, k, v, o and lse; q, k, v of linear attention) stays by
 * heads, where backward wants it, so that backward moves only gradients. Backward alone is given it
 * so, too.
 */
#pragma once

#include "program/holding.h"
#include "sched/common/pass.h"

extern const LhOption lh_option_hierarchy; /* --hierarchical-context-parallel-sizes */
extern const LhOption lh_option_pad_heads;

/* Ranks that exchange heads with each other; 0: not chosen yet. */
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

/* The tensors that move. */
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
 * How heads are cut for a group. With more slices than ranks, a rank has room for as many as any of
 * them has. With fewer key-value slices than ranks, several ranks have the same one, and the
 * all-to-all moves a replica for each.
 */
typedef struct {
    uint32_t members;           /* U */
    uint32_t slices, kv_slices; /* of query heads, a multiple of those of key-value heads */
} LhHeadsCut;

/* Where backward has o from. */
typedef enum {
    LH_HEADS_O_KEPT,     /* by heads, as forward has left it */
    LH_HEADS_O_GATHERED, /* by tokens, to be gathered again */
    LH_HEADS_O_UNUSED,   /* the gradients of linear attention need none */
} LhHeadsOutput;

typedef struct _LhHeads LhHeads;

/* Moves tensors from one layout to the other; compute ops wait for the results. */
typedef void (*LhHeadsMove)(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                            unsigned count, bool to_heads);

/* A part of a schedule's plan. In groups of one rank nothing moves, and all layouts are one. */
struct _LhHeads {
    LhHeadsCut cut;
    LhHeadsMove move; /* one of the two below */
    bool two_stages;  /* what has arrived is laid out, too: the slots `arrived` */
    LhHeadsOutput o;
    bool grads_narrow; /* gradients are exchanged as activations, whatever the wire's type */
    uint32_t parts;    /* of one slice by heads: segments of the group */
    uint16_t tokens[LH_HEADS_TENSORS], stage[LH_HEADS_TENSORS], arrived[LH_HEADS_TENSORS],
        heads[LH_HEADS_TENSORS];
    uint16_t lse;           /* by heads; softmax only */
    uint16_t dkv_sum;       /* by tokens, in fp32: where the gradients of replicas add up */
    LhKernelArgs attention; /* of groups that hold the whole sequence */

    /* Between the exchanges: step @step of attention in this phase. */
    void (*attend)(LhEmitter *e, uint32_t step);
    uint32_t forward_steps, backward_steps;
};

/*
 * Fills in @heads, of which the caller has set what stands before `parts`, and declares: streams,
 * inputs and outputs as lh_pass_declare does, but no lse by tokens, which nobody needs; and what is
 * held by heads and in between.
 */
void lh_heads_declare(LhProgram *program, LhHeads *heads);

/* What attention by heads works on. */
LhPassSlots lh_heads_slots(const LhHeads *heads);

/* How many slices of query heads @rank has by heads. */
uint32_t lh_heads_own(const LhHeadsCut *cut, uint32_t rank);

/* Sizes of a rank by tokens, with gradients as they are exchanged. */
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

/* The tensors that backward gathers: do, and perhaps o. */
static inline unsigned
lh_heads_gathered(const LhHeads *heads)
{
    return heads->o == LH_HEADS_O_GATHERED ? 2 : 1;
}

/* Each tensor is laid out, sent and waited for before the next one. */
void lh_heads_move_one_by_one(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                              unsigned count, bool to_heads);

/*
 * As TransformerEngine: while a tensor is sent, the next one is laid out, and the one before is
 * brought into the order of tokens on the stream after those of the pass, a second compute stream
 * which the caller declares. Of zigzag halves without a split, and without replicas.
 */
#define LH_HEADS_STREAM_CP 2
void lh_heads_move_pipelined(LhEmitter *e, const LhHeads *heads, const LhHeadsTensor *tensors,
                             unsigned count, bool to_heads);

/* Arguments of attention over all tokens of the sequence, in @parts parts, for one slice. */
LhKernelArgs lh_heads_attention_args(const LhProgram *program, uint32_t parts);

/* Groups hold the whole sequence: attention is one step, the rank's slices one after the other. */
void lh_heads_set_whole(const LhProgram *program, LhHeads *heads);

/* The plan of a schedule of one group of all ranks and nothing else. */
void lh_heads_declare_whole(LhProgram *program, const LhHeads *heads);

/* The generator of a schedule whose plan begins with its LhHeads: move, attention, move. While
 * attention runs, o and lse (backward: dq and dkv) are allocated by heads. */
uint32_t lh_heads_steps(const LhProgram *program, uint32_t rank);
void lh_heads_emit(LhEmitter *e, uint32_t step);

/* Closed forms of attention: of one group of all ranks; of zigzag rings between groups. */
uint64_t lh_heads_whole_flops(const LhProgramParams *p, const LhHeads *heads, uint32_t rank);
uint64_t lh_heads_ring_flops(const LhProgramParams *p, uint32_t rank);

/* The flops of attention of @heads query heads among all tokens, softmax or linear, in the passes
 * that are run. */
uint64_t lh_heads_flops(const LhProgramParams *p, uint32_t heads);

/* What a rank sends in all-to-alls. */
uint64_t lh_heads_bytes_sent(const LhProgramParams *p, const LhHeads *heads, uint32_t rank);

/* Bytes that attention itself takes in each pass, and those among them that are kept in between. */
typedef struct {
    uint64_t forward, backward, kept;
} LhHeadsBuffers;

/* What a rank holds; NULL: attention takes nothing. */
uint64_t lh_heads_peak_bytes(const LhProgramParams *p, const LhHeads *heads,
                             const LhHeadsBuffers *buffers);

/* Defines the closed forms bytes_sent, flops and peak_bytes of a schedule of one group of all
 * ranks, whose LhHeads are HEADS_OF(params). */
#define LH_HEADS_WHOLE_FORMS(HEADS_OF)                                                             \
    static uint64_t bytes_sent(const LhProgramParams *p, uint32_t rank)                            \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        return lh_heads_bytes_sent(p, &heads, rank);                                               \
    }                                                                                              \
                                                                                                   \
    static uint64_t flops(const LhProgramParams *p, uint32_t rank)                                 \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        return lh_heads_whole_flops(p, &heads, rank);                                              \
    }                                                                                              \
                                                                                                   \
    static uint64_t peak_bytes(const LhProgramParams *p, uint32_t rank)                            \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        (void)rank;                                                                                \
        return lh_heads_peak_bytes(p, &heads, NULL);                                               \
    }

/* Rounds heads and groups up so that @ranks ranks can share them; the hidden size stays what it is.
 * With @replicate a key-value head may be shared by several ranks. */
void lh_heads_pad(LhAttention *attention, uint32_t ranks, bool replicate);

/* "3, 4": the numbers of ranks nearest to @ranks that @legal allows. Caller frees. */
char *lh_heads_nearest_ranks(const LhAttention *a, uint32_t ranks,
                             bool (*legal)(const LhAttention *a, uint32_t ranks));

/* For the choice of a group's size: the largest one that divides ranks, groups and the devices of a
 * node (0: unknown). And refuses one that does not divide ranks and groups. */
uint32_t lh_heads_group_size(const LhProgramParams *p);
void lh_heads_adapt_group_size(LhProgramParams *p); /* pads heads, and sets the default */
bool lh_heads_check_group_size(const LhProgramParams *p, GError **error);
