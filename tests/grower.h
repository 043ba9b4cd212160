/*
 * What the files of growing programs share:
 *
 *     grown_program.c   what programs are, the order of their ops, and which of these stay
 *     grown_recipes.c   how a result may come about, on purpose
 *     grown_wild.c      ops without a purpose
 *
 * A recipe goes by kinds of tensors, segments and sets of contributions, and by nothing else: that
 * normalised results do not add up, or that operands lie apart, is the judge's to say.
 */
#pragma once

#include "built.h"
#include "grown_program.h"

#define GROWN_RANKS_MAX 3
#define GROWN_SLOTS_MAX 64
#define GROWN_CELLS_MAX 256
#define GROWN_OPS_MAX 64 /* of a rank, beside those that allocate and free */
#define GROWN_STREAMS 3

/* What one part of one slot on one rank holds. */
typedef struct {
    bool known;       /* the following; else nothing is known of it */
    bool empty;       /* an accumulator of no rows, and nothing else */
    bool ended;       /* of gradients of scores: they have gone through softmax */
    uint8_t pins;     /* it is still needed: by so many */
    uint32_t segment; /* whose rows these are; of a state, the segment behind its border */
    uint32_t set;     /* bits of the segments that have contributed */
} GrownCell;

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
    uint64_t rows;  /* of a segment */
    uint32_t first; /* id of a rank's first op that allocates nothing */
    uint32_t tries; /* that are left */
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

/* A number below @below; whether something happens that does so in @percent of all cases. */
uint32_t grown_draw(Grower *g, uint32_t below);
bool grown_chance(Grower *g, uint32_t percent);

GrownCell *grown_cell(Grower *g, uint32_t rank, LhRegion region, uint32_t i);

/* The segments that the mask lets a query segment meet, or a key segment: bits. */
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

/* ---- grown_recipes.c ---- */

/* Whether part @part of output slot @slot is what it should be; makes it that, perhaps. */
bool grown_has(Grower *g, uint32_t rank, uint16_t slot, uint32_t part);
void grown_aim(Grower *g, uint32_t rank, uint16_t slot, uint32_t part);

/* ---- grown_wild.c ---- */

void grown_go_wild(Grower *g);
