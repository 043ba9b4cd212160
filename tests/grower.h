/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of growing programs share:
 *
 *     grown_program.c       what programs are, the order of their ops, and which of these stay
 *     grown_cells.c         what parts hold, and which ones hold what is wanted
 *     grown_recipes.c       how a result may come about, on purpose
 *     grown_moves.c         the same, where it comes from other ranks
 *     grown_collectives.c   collectives that copy, of all kinds and shapes
 *     grown_memory.c        allocs and frees
 *     grown_wild.c          ops without a purpose
 *
 * A recipe goes by kinds of tensors, segments, slices of the heads and sets of contributions, and
 * by nothing else: that normalised results do not add up, or that operands lie apart, is the
 * judge's to say. And where the judge knows contents, a recipe now and then takes something for
 * what it is not.
 */
#pragma once

#include "built.h"
#include "grown_program.h"

#define GROWN_RANKS_MAX 3
#define GROWN_SLOTS_MAX 64
#define GROWN_CELLS_MAX 256
#define GROWN_OPS_MAX                                                                              \
    64 /* of a rank, but those that allocate and free at its beginning and end                     \
        */
#define GROWN_STREAMS 3
#define GROWN_SEGMENTS_MAX (2 * GROWN_RANKS_MAX)
#define GROWN_MISTAKES 5 /* percent of chances to believe too much that recipes take */

/* What one part of one slot on one rank holds. */
typedef struct {
    bool gone;        /* it is not allocated, whatever else is said of it */
    bool known;       /* the following; else nothing is known of it */
    bool empty;       /* an accumulator of no rows, and nothing else */
    bool ended;       /* of gradients of scores: they have gone through softmax */
    uint8_t pins;     /* it is still needed: by so many */
    uint32_t segment; /* whose rows these are; of a state, the segment behind its border */
    uint32_t slice;   /* of the heads, of queries or of keys and values */
    uint32_t set;     /* bits of what has contributed: of segments; to rows of keys, of segments and
                         replicas */
} GrownCell;

#define GROWN_NARROW 1U
#define GROWN_FP32 2U
#define GROWN_ANY_TYPE (GROWN_NARROW | GROWN_FP32)

/* What a part is to hold. */
typedef struct {
    LhTensorKind kind;
    uint32_t types;        /* of GROWN_NARROW, the program's, and GROWN_FP32 */
    uint32_t segment, set; /* as GrownCell has them; of kinds without contributions, no set */
    bool ended;
    uint32_t slice;
} GrownWant;

/* Softmax attention in blocks, or with its scores written out; linear attention. */
typedef enum { GROWN_BLOCKS, GROWN_SCORES, GROWN_LINEAR, GROWN_KINDS } GrownKind;

typedef struct {
    uint64_t seed, drawn;
    GrownKind kind;
    LhDtype dtype;
    GrownJudge judge;
    bool wild;
    Built built;
    LhProgram *program;
    uint32_t ranks, segments;
    uint32_t replicas; /* slices of query heads that share one of key-value heads */
    uint64_t rows;     /* of a segment */
    uint32_t
        first[GROWN_RANKS_MAX]; /* id of a rank's first op behind the allocs of its beginning */
    uint32_t tries;             /* that are left */
    uint64_t before[GROWN_RANKS_MAX][GROWN_OPS_MAX]; /* by op from `first` on: bits of those that
                                                        are complete when it starts */
    GrownCell cells[GROWN_RANKS_MAX][GROWN_CELLS_MAX];
    LhKernelId kernels[LH_KERNELS_COUNT]; /* whose operands have slots */
    uint32_t kernels_count;
    LhExplicitRank views[GROWN_RANKS_MAX];
    LhExplicit view;
} Grower;

/* How far a program has come, to go back to. */
typedef struct {
    uint32_t ops[GROWN_RANKS_MAX], parts[GROWN_RANKS_MAX], counts[GROWN_RANKS_MAX];
    GrownCell cells[GROWN_RANKS_MAX][GROWN_CELLS_MAX];
} GrownState;

/* ---- grown_program.c ---- */

/* Whether a recipe takes something for what it is not, for the judge to notice: only where that
 * knows contents. */
bool grown_mistakes(Grower *g);

/* A number below @below; whether something happens that does so in @percent of all cases. */
uint32_t grown_draw(Grower *g, uint32_t below);
bool grown_chance(Grower *g, uint32_t percent);

/* What the mask lets a query segment meet, or a key segment: bits of GrownCell.set. */
uint32_t grown_complete(const Grower *g, LhTensorKind kind, uint32_t segment);

/* A call, or its end of a message or collective, is the rank's last op: it comes after what it must
 * come after. */
void grown_order(Grower *g, uint32_t rank);

void grown_keep(const Grower *g, GrownState *state);
void grown_go_back(Grower *g, const GrownState *state);
/* Whether the ops since @state may stay; if not, they are gone, and all is as it was then. */
bool grown_settle(Grower *g, const GrownState *state);

/* Mask and number of pairs of a call for the rows of segment @q with those of @k: the one that the
 * program has there, or one like it. Several parts of keys: by positions. */
void grown_mask(Grower *g, LhKernelArgs *args, uint32_t q, const uint32_t *k, uint32_t k_count);

/* ---- grown_cells.c ---- */

GrownCell *grown_cell(Grower *g, uint32_t rank, LhRegion region, uint32_t i);

/* What is said of parts of a region: somebody needs them, or does not any more; part @i holds this
 * now, and whoever needs it still does. */
void grown_pin(Grower *g, uint32_t rank, LhRegion region);
void grown_unpin(Grower *g, uint32_t rank, LhRegion region);
void grown_put(Grower *g, uint32_t rank, LhRegion region, uint32_t i, GrownCell holds);

/* Whether tensors of a kind have contributions; whether kernels for tensors of any kind take it. */
bool grown_has_set(LhTensorKind kind);
bool grown_suits_any(LhTensorKind kind);
uint32_t grown_types(const LhSlot *slot);

/* A part that holds what is wanted; whether one does. */
GrownCell grown_result(const GrownWant *w);
bool grown_is_wanted(const GrownCell *c, const GrownWant *w);

/* One of the windows of @count parts in slots of @w for which @suits says yes; pinned. */
typedef bool (*GrownSuits)(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window);
bool grown_choose_window(Grower *g, uint32_t rank, const GrownWant *w, uint32_t count,
                         GrownSuits suits, LhRegion *window);
bool grown_holds_wanted(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window);
bool grown_is_free(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window);

/* Parts that nobody needs; mostly such that hold nothing. Pinned, and allocated. */
bool grown_choose_free(Grower *g, uint32_t rank, const GrownWant *w, uint32_t count,
                       LhRegion *window);

/* ---- grown_recipes.c ---- */

/* Makes what is wanted, in @into if that is not NULL, or says where it is. @made is pinned. */
bool grown_make(Grower *g, uint32_t rank, const GrownWant *w, const LhRegion *into, unsigned depth,
                LhRegion *made);

/* Makes parts empty accumulators. */
bool grown_empty(Grower *g, uint32_t rank, LhRegion region);

/* Whether part @part of output slot @slot is what it should be; makes it that, perhaps. */
bool grown_has(Grower *g, uint32_t rank, uint16_t slot, uint32_t part);
void grown_aim(Grower *g, uint32_t rank, uint16_t slot, uint32_t part);

/* ---- grown_moves.c ---- */

/* Another rank makes what is wanted at @at and sends it, by message or collective; perhaps each
 * half by itself. */
bool grown_by_move(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth);

/* Each rank makes some of its terms, and they are added up, here or everywhere. */
bool grown_by_reduction(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth);

/* ---- grown_collectives.c ---- */

/* Another rank makes what is wanted, and it comes as a piece of a collective; or one half of it, as
 * @at says. */
bool grown_by_collective(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth);

/* Any collective of any parts. */
void grown_meet_anyhow(Grower *g);

/* ---- grown_memory.c ---- */

/* Temporary parts as a rank has them at its beginning, some of them not at all; frees all that are
 * left. */
void grown_begin_memory(Grower *g, uint32_t rank);
void grown_end_memory(Grower *g, uint32_t rank);

/* Allocates those parts of a window that are gone; or, @at_once, all if some are. False: the rank
 * has ops enough. */
bool grown_bring_back(Grower *g, uint32_t rank, LhRegion window, bool at_once);

/* Frees parts that nobody needs, perhaps. */
void grown_free_some(Grower *g, uint32_t rank);
/* Frees any parts; some of them are allocated again, and some are believed to hold what they did.
 */
void grown_free_anyhow(Grower *g);

/* ---- grown_wild.c ---- */

void grown_go_wild(Grower *g);
