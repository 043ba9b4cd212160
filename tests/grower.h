/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that grow random programs:
 *
 *     grown_program.c       parameters of programs, the order of their ops, and which ops stay
 *     grown_cells.c         contents of parts, and search for parts with wanted contents
 *     grown_recipes.c       recipes: ways to produce a wanted result
 *     grown_moves.c         recipes that use results of other ranks
 *     grown_collectives.c   collectives that copy, of all kinds and shapes
 *     grown_memory.c        allocs and frees
 *     grown_wild.c          ops without a purpose
 *
 * A recipe considers only kinds of tensors, segments, slices of the heads and sets of
 * contributions. Other rules (normalised results cannot be added, operands must not overlap) are
 * left to the judge. Where the judge tracks contents, a recipe occasionally uses a part with wrong
 * contents.
 */
#pragma once

#include "built.h"
#include "grown_program.h"

#define GROWN_RANKS_MAX 3
#define GROWN_SLOTS_MAX 64
#define GROWN_CELLS_MAX 256
#define GROWN_OPS_MAX 64 /* per rank, without allocs and frees at its beginning and end */
#define GROWN_STREAMS 3
#define GROWN_SEGMENTS_MAX (2 * GROWN_RANKS_MAX)
#define GROWN_MISTAKES 5 /* percent of a recipe's chances to use wrong contents */

/* The content of one part of one slot on one rank. */
typedef struct {
    bool gone;        /* not allocated, whatever the other members say */
    bool known;       /* the members below are valid; otherwise the content is unknown */
    bool empty;       /* an accumulator of no rows */
    bool ended;       /* of gradients of scores: softmax's gradient has been applied */
    uint8_t pins;     /* number of uses that still need it */
    uint32_t segment; /* segment of the rows; of a state, the segment behind its border */
    uint32_t slice;   /* of the query heads, or of the key-value heads */
    uint32_t set;     /* bits of contributions: by segment; for keys, by segment and replica */
} GrownCell;

#define GROWN_NARROW 1U
#define GROWN_FP32 2U
#define GROWN_ANY_TYPE (GROWN_NARROW | GROWN_FP32)

/* A wanted content of a part. */
typedef struct {
    LhTensorKind kind;
    uint32_t types;        /* bits: GROWN_NARROW (the program's type), GROWN_FP32 */
    uint32_t segment, set; /* as in GrownCell; no set for kinds without contributions */
    bool ended;
    uint32_t slice;
} GrownWant;

/* Softmax attention in blocks, softmax attention with its scores materialised, linear attention. */
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
    uint32_t replicas;               /* slices of query heads per slice of key-value heads */
    uint64_t rows;                   /* per segment */
    uint32_t first[GROWN_RANKS_MAX]; /* id of a rank's first op after its initial allocs */
    uint32_t tries;                  /* left */
    uint64_t before[GROWN_RANKS_MAX][GROWN_OPS_MAX]; /* by op, counted from `first`: bits of the ops
                                                        complete when it starts */
    GrownCell cells[GROWN_RANKS_MAX][GROWN_CELLS_MAX];
    LhKernelId kernels[LH_KERNELS_COUNT]; /* those whose operands all have slots */
    uint32_t kernels_count;
    LhExplicitRank views[GROWN_RANKS_MAX];
    LhExplicit view;
} Grower;

/* A point in a program's growth to return to. */
typedef struct {
    uint32_t ops[GROWN_RANKS_MAX], parts[GROWN_RANKS_MAX], counts[GROWN_RANKS_MAX];
    GrownCell cells[GROWN_RANKS_MAX][GROWN_CELLS_MAX];
} GrownState;

/* ---- grown_program.c ---- */

/* Draws whether a recipe uses wrong contents for the judge to detect; only where the judge tracks
 * contents. */
bool grown_mistakes(Grower *g);

/* A random number below @below; true in @percent percent of calls. */
uint32_t grown_draw(Grower *g, uint32_t below);
bool grown_chance(Grower *g, uint32_t percent);

/* The segments that the mask lets a segment of queries (or keys) meet: bits of GrownCell.set. */
uint32_t grown_complete(const Grower *g, LhTensorKind kind, uint32_t segment);

/* Orders the rank's last op (a call, or its end of a message or collective) after the ops it must
 * follow. */
void grown_order(Grower *g, uint32_t rank);

void grown_keep(const Grower *g, GrownState *state);
void grown_go_back(Grower *g, const GrownState *state);
/* Asks the judge whether the ops since @state may stay. If not, removes them and restores the
 * state. */
bool grown_settle(Grower *g, const GrownState *state);

/* Sets the mask and the number of pairs of a call for the rows of segment @q with those of @k: the
 * program's own mask or an equivalent one. Several parts of keys: a mask by positions. */
void grown_mask(Grower *g, LhKernelArgs *args, uint32_t q, const uint32_t *k, uint32_t k_count);

/* ---- grown_cells.c ---- */

GrownCell *grown_cell(Grower *g, uint32_t rank, LhRegion region, uint32_t i);

/* Pin parts (they are needed), unpin them, or record the new content of part @i, which keeps its
 * pins. */
void grown_pin(Grower *g, uint32_t rank, LhRegion region);
void grown_unpin(Grower *g, uint32_t rank, LhRegion region);
void grown_put(Grower *g, uint32_t rank, LhRegion region, uint32_t i, GrownCell holds);

/* Whether tensors of a kind have contributions; whether kernels for tensors of any kind accept
 * it. */
bool grown_has_set(LhTensorKind kind);
bool grown_suits_any(LhTensorKind kind);
uint32_t grown_types(const LhSlot *slot);

/* A cell that holds what is wanted; whether a cell does. */
GrownCell grown_result(const GrownWant *w);
bool grown_is_wanted(const GrownCell *c, const GrownWant *w);

/* Chooses one of the windows of @count parts in slots of @w that @suits accepts, and pins it. */
typedef bool (*GrownSuits)(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window);
bool grown_choose_window(Grower *g, uint32_t rank, const GrownWant *w, uint32_t count,
                         GrownSuits suits, LhRegion *window);
bool grown_holds_wanted(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window);
bool grown_is_free(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window);

/* Chooses parts that nothing needs, mostly ones of unknown content; pins and allocates them. */
bool grown_choose_free(Grower *g, uint32_t rank, const GrownWant *w, uint32_t count,
                       LhRegion *window);

/* ---- grown_recipes.c ---- */

/* Produces the wanted content, in @into if not NULL, or finds a part that holds it. @made is
 * pinned. */
bool grown_make(Grower *g, uint32_t rank, const GrownWant *w, const LhRegion *into, unsigned depth,
                LhRegion *made);

/* Turns parts into empty accumulators. */
bool grown_empty(Grower *g, uint32_t rank, LhRegion region);

/* Whether part @part of output slot @slot is complete; tries to complete it. */
bool grown_has(Grower *g, uint32_t rank, uint16_t slot, uint32_t part);
void grown_aim(Grower *g, uint32_t rank, uint16_t slot, uint32_t part);

/* ---- grown_moves.c ---- */

/* Another rank produces the wanted content and sends it to @at by message or collective, possibly
 * half by half. */
bool grown_by_move(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth);

/* Each rank produces some of the terms; an all-reduce or reduce-scatter adds them. */
bool grown_by_reduction(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth);

/* ---- grown_collectives.c ---- */

/* Another rank produces the wanted content, which arrives as a piece of a collective; or one half
 * of it, according to @at. */
bool grown_by_collective(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth);

/* Emits any collective on any parts. */
void grown_meet_anyhow(Grower *g);

/* ---- grown_memory.c ---- */

/* Allocates a rank's initial temporary parts, except some; frees all that are left at the end. */
void grown_begin_memory(Grower *g, uint32_t rank);
void grown_end_memory(Grower *g, uint32_t rank);

/* Allocates the freed parts of a window; with @at_once, reallocates the whole window if any is
 * freed. False if the rank has no room for more ops. */
bool grown_bring_back(Grower *g, uint32_t rank, LhRegion window, bool at_once);

/* Possibly frees parts that nothing needs. */
void grown_free_some(Grower *g, uint32_t rank);
/* Frees any parts; some are allocated again, and some are assumed to keep their content. */
void grown_free_anyhow(Grower *g);

/* ---- grown_wild.c ---- */

void grown_go_wild(Grower *g);
