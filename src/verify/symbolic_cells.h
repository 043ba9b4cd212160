/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic contents, for the files of the coverage proof. Every cell (one part of one slot on one
 * rank) holds the rows of one segment for one slice of the heads. A result also holds the set of
 * contributions to those rows (lh_symbolic_source).
 */
#pragma once

#include "verify/proof.h"
#include "verify/symbolic_sets.h"

#define LH_ROW_ANY (UINT32_MAX - 1)  /* an empty accumulator, not yet of particular rows */
#define LH_ROW_NONE (UINT32_MAX - 2) /* contents that the verifier makes no claim about */

typedef enum {
    LH_CELL_UNDEFINED,
    LH_CELL_DEFINED,
    LH_CELL_SUSPECT, /* the result of an op with a finding: causes no further findings */
} LhCellState;

/* Divisor of o of softmax attention, and of delta, which is derived from it. */
typedef enum {
    LH_NORM_OWN, /* the sum over the keys in the cell's set only: two such cells cannot be added */
    LH_NORM_ROW, /* the sum over all keys of the row: terms of its o, which can be added */
} LhNorm;

/* 20 bytes: a proof has millions of cells. */
typedef struct {
    LhHolding rows;    /* segment may be LH_ROW_ANY or LH_ROW_NONE, with slice 0. Of a state: the
                          segment after its border; the number of segments at the end */
    uint32_t set;      /* contributions: a number of LhSymbolicExec.contents; of a plain tensor, the
                          empty set */
    uint8_t state : 2; /* LhCellState */
    uint8_t norm : 1;  /* LhNorm */
    uint8_t half : 2;  /* LhHalf: which half of a part with halves is written; otherwise
                          LH_HALF_BOTH */
    uint8_t ended : 1; /* a finished result: takes no further contributions */
    /* For activations outside attention: */
    uint8_t unread : 1;  /* received data that no op has used */
    uint8_t result;      /* source, a LhTensorKind + 1; 0: no result of attention ... */
    uint16_t first, end; /* ... for the slices [first, end) of the heads */
    uint16_t input;      /* copy of this input slot, + 1; 0: of none */
} LhCell;

G_STATIC_ASSERT(LH_HALVES <= 4);

typedef struct {
    LhProof *proof;
    const LhSlot *slots;
    uint32_t segments;
    uint32_t replicas;       /* slices of query heads that share one key-value slice */
    uint32_t words;          /* of a set of contributions */
    LhSegment *segment;      /* [segments] */
    uint64_t rows;           /* tokens of every segment */
    LhBlock *blocks;         /* [segments * segments] by query, then key; NULL: too many to keep */
    LhCell *cells;           /* [ranks * cells_count] */
    uint32_t *writers;       /* of all cells: global op that wrote a cell last, or LH_NONE:
                                initial contents; NULL in program order, where none is needed */
    LhSymbolicSets contents; /* of all cells */
    uint64_t *scratch;       /* [3 * words] sets for a moment: see lh_symbolic_scratch() */
    uint64_t *keys_of;       /* [segments * words] keys that a query segment must attend to */
    uint64_t *all_of;        /* [segments * words] those of keys_of without masked pairs */
    uint64_t *queries_of;    /* [segments * words] queries that a key segment must get */
    uint64_t *before;        /* [segments * words] those of keys_of before the segment: a state's */
    uint32_t *complete;      /* [3 * segments] numbers of the sets of keys_of, queries_of, before */
    uint8_t *started;        /* [ops_count] */
    bool projects;           /* the program states how activations outside attention relate to it */
    bool computes_layer;     /* it computes the layer outside attention itself */
    uint8_t *taken; /* [slots] with projections: tensor, + 1, given by an input slot; 0: none */
} LhSymbolicExec;

/* The kinds of contributions that a tensor collects. Tensors of one family derive from each
 * other. */
typedef enum {
    LH_FAMILY_PLAIN, /* rows only */
    LH_FAMILY_OUTPUT,
    LH_FAMILY_DQ,
    LH_FAMILY_DKV,
    LH_FAMILY_STATE,
    LH_FAMILY_DSTATE,
    LH_FAMILY_SCORES,
} LhFamily;

extern const LhFamily lh_families[LH_TENSOR_KINDS];

static inline LhCell *
lh_symbolic_cell(const LhSymbolicExec *cover, uint32_t rank, uint32_t slot, uint32_t part)
{
    return &cover->cells[(size_t)rank * cover->proof->cells_count +
                         cover->proof->program->slots[slot].first_cell + part];
}

/* Notes that @op has written a cell. */
static inline void
lh_symbolic_note_writer(const LhSymbolicExec *cover, const LhCell *cell, uint32_t op)
{
    if (cover->writers != NULL)
        cover->writers[cell - cover->cells] = op;
}

/* The contributions of a cell, until it changes. */
static inline const uint64_t *
lh_symbolic_set(const LhSymbolicExec *cover, const LhCell *cell)
{
    return lh_symbolic_sets_get(&cover->contents, cell->set);
}

/* A set to work with. */
static inline uint64_t *
lh_symbolic_scratch(const LhSymbolicExec *cover, unsigned index)
{
    return &cover->scratch[(size_t)index * cover->words];
}

/* Gives @cell the contributions of number @set, or none; adds those of @more. */
static inline void
lh_symbolic_give_set(LhSymbolicExec *cover, LhCell *cell, uint32_t set)
{
    lh_symbolic_sets_hold(&cover->contents, set);
    lh_symbolic_sets_drop(&cover->contents, cell->set);
    cell->set = set;
}

static inline void
lh_symbolic_clear_set(LhSymbolicExec *cover, LhCell *cell)
{
    lh_symbolic_sets_drop(&cover->contents, cell->set);
    cell->set = LH_SYMBOLIC_SET_EMPTY;
}

void lh_symbolic_add_set(LhSymbolicExec *cover, LhCell *cell, const uint64_t *more);

static inline bool
lh_set_has(const uint64_t *set, uint32_t source)
{
    return set[source / 64] >> source % 64 & 1;
}

static inline void
lh_set_add(uint64_t *set, uint32_t source)
{
    set[source / 64] |= UINT64_C(1) << source % 64;
}

static inline void
lh_set_remove(uint64_t *set, uint32_t source)
{
    set[source / 64] &= ~(UINT64_C(1) << source % 64);
}

static inline bool
lh_rows_equal(LhHolding a, LhHolding b)
{
    return a.segment == b.segment && a.slice == b.slice;
}

/*
 * The number of a contribution in the sets of @family. The rows of a query slice collect key
 * segments; the rows of a key-value slice collect query segments, of each slice that shares its
 * heads.
 */
static inline uint32_t
lh_symbolic_source(const LhSymbolicExec *cover, LhFamily family, LhHolding rows)
{
    if (family != LH_FAMILY_DKV)
        return rows.segment;
    return rows.segment * cover->replicas + rows.slice % cover->replicas;
}

/* The slice of the key-value heads that serves a slice of the query heads. */
static inline uint32_t
lh_symbolic_kv_slice(const LhSymbolicExec *cover, uint32_t slice)
{
    return slice / cover->replicas;
}

/* "segment 3", or "slice 1 of segment 3" in a program with sliced heads; caller frees. */
char *lh_symbolic_rows_text(const LhSymbolicExec *cover, LhHolding rows);
/* The same for a contribution to the sets of @family in rows of slice @slice. */
char *lh_symbolic_source_text(const LhSymbolicExec *cover, LhFamily family, uint32_t source,
                              uint32_t slice);

/* The contributions that the mask requires for the rows of segment @segment: the set, and its
 * number in the contents. */
const uint64_t *lh_symbolic_complete(const LhSymbolicExec *cover, LhFamily family,
                                     uint32_t segment);
uint32_t lh_symbolic_complete_number(const LhSymbolicExec *cover, LhFamily family,
                                     uint32_t segment);
void lh_symbolic_number_complete(LhSymbolicExec *cover); /* before cells have contents */

/* Canonical form of a set of pairs of two segments of @rows rows. */
LhBlock lh_symbolic_normalise(LhMaskKind kind, int64_t shift, uint64_t rows);

/* The block of the program's mask for query segment @q and key segment @k. LH_MASK_POSITIONS:
 * some pairs, which no mask in local indices describes. */
LhBlock lh_symbolic_block(const LhSymbolicExec *cover, uint32_t q, uint32_t k);

/*
 * The cell of part @i of @region as @op reads it. NULL, with a finding, if it has not been written
 * since its slot was allocated, or the half that the region names is missing, or one of both; NULL
 * without a finding if it is suspect. lh_symbolic_read_rows also requires the rows of a particular
 * segment.
 */
static inline LhCell *lh_symbolic_read(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                                       uint32_t i);
LhCell *lh_symbolic_read_rows(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                              uint32_t i);

/* What lh_symbolic_read() does with all but whole contents in program order. */
LhCell *lh_symbolic_read_checked(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                                 uint32_t i);

static inline LhCell *
lh_symbolic_read(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i)
{
    LhCell *cell =
        lh_symbolic_cell(cover, cover->proof->op_rank[op], region->slot, region->part + i);

    cell->unread = false;
    if (cell->state == LH_CELL_DEFINED && cell->half == LH_HALF_BOTH && cover->writers == NULL)
        return cell;
    return lh_symbolic_read_checked(cover, op, region, i);
}

/* The divisor of a cell of a tensor of this kind. */
LhNorm lh_symbolic_norm(LhTensorKind kind, const LhCell *cell);

/* Part @i of a region, and its divisor. */
typedef struct {
    const LhRegion *region;
    uint32_t i;
    LhNorm norm;
} LhAddend;

/*
 * Whether @from may be added to the cell @into of a tensor of @kind. A @fresh (empty) accumulator
 * takes the divisor of @from; otherwise both must be terms of the row. Kinds other than o and
 * delta, and linear attention, have no divisor. False, with a finding, if not.
 */
bool lh_symbolic_join_norm(LhSymbolicExec *cover, uint32_t op, const LhAddend *from,
                           LhTensorKind kind, bool fresh, LhCell *into);

/* Makes part @i an empty cell of @rows, written by @op; lh_symbolic_write_none: of no particular
 * rows (LH_ROW_ANY or LH_ROW_NONE). */
LhCell *lh_symbolic_write(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                          LhHolding rows);
LhCell *lh_symbolic_write_none(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                               uint32_t i, uint32_t row);

/*
 * Writes the contents of @from (NULL: suspect) to part @i of @region by @op. One half joins the
 * other one if that has the same rows and contributions; otherwise it replaces it.
 */
void lh_symbolic_put(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                     const LhCell *from);

/* into += from. False, with a finding about @target, if they share a contribution. */
bool lh_symbolic_merge(LhSymbolicExec *cover, uint32_t op, const LhRegion *target, LhCell *into,
                       const LhCell *from);

/* Building blocks of effects. All return false or NULL on an error, with a finding or because of
 * an earlier one. */

/* Empties the accumulators that @op starts, before it does anything else. */
void lh_symbolic_start(LhSymbolicExec *cover, uint32_t op);

/* Opens part @i of an accumulator for contributions to @rows; lh_symbolic_open_unended rejects a
 * finished result. */
LhCell *lh_symbolic_open(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                         LhHolding rows);
LhCell *lh_symbolic_open_unended(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                                 uint32_t i, LhHolding rows);

/* Adds contribution @source to a cell of @region. */
bool lh_symbolic_contribute(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                            LhCell *cell, uint32_t source);

/* Fills part @part of an input as the placement defines. */
void lh_symbolic_fill_input(LhSymbolicExec *cover, uint32_t rank, uint32_t slot, uint32_t part);

#define COVERAGE(op, slot, ...)                                                                    \
    lh_proof_find(cover->proof, LH_FINDING_COVERAGE,                                               \
                  (LhFindingPlace){ cover->proof->op_rank[op], op, (int32_t)(slot), LH_NONE },     \
                  __VA_ARGS__)
