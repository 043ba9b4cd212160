/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic contents, for the files of the coverage proof. Every cell (one part of one slot on one
 * rank) holds the rows of one segment for one slice of the heads; a result also holds the set of
 * what has contributed to those rows (lh_symbolic_source).
 */
#pragma once

#include "verify/proof.h"

#define LH_ROW_ANY (UINT32_MAX - 1)  /* an empty accumulator of no particular rows */
#define LH_ROW_NONE (UINT32_MAX - 2) /* contents that the verifier makes no claim about */

typedef enum {
    LH_CELL_UNDEFINED,
    LH_CELL_DEFINED,
    LH_CELL_SUSPECT, /* the result of an op with a finding: says nothing more */
} LhCellState;

/* What o of softmax attention, and delta, which comes from it, are divided by. */
typedef enum {
    LH_NORM_OWN, /* the sum over the keys in the cell's set alone: two of them do not add up */
    LH_NORM_ROW, /* that over all keys of the row: terms of its o, which do */
} LhNorm;

typedef struct {
    LhHolding rows;  /* whose segment may be LH_ROW_ANY or LH_ROW_NONE; the slice is then 0. Of a
                        state: the segment behind its border; as many as there are, at the end */
    uint32_t writer; /* global op, or LH_NONE: there from the start */
    uint8_t state;   /* LhCellState */
    uint8_t norm;    /* LhNorm */
    uint8_t half; /* LhHalf: of a part with halves, what is there; else LH_HALF_BOTH, all of it */
    bool ended;   /* a finished result: takes no further contributions */
    /* Of activations outside attention: */
    bool unread;         /* nobody has used what came in here */
    uint8_t result;      /* what it comes from, a LhTensorKind + 1; 0: no result of attention ... */
    uint16_t first, end; /* ... of so many slices of the heads, [first, end) */
    uint16_t input;      /* it is a copy of this input slot, + 1; 0: of none */
} LhCell;

typedef struct {
    LhProof *proof;
    const LhSlot *slots;
    uint32_t segments;
    uint32_t replicas;    /* slices of query heads that share one of key-value heads */
    uint32_t words;       /* of a set of contributions */
    LhSegment *segment;   /* [segments] */
    uint64_t rows;        /* tokens of every segment */
    LhBlock *blocks;      /* [segments * segments] by query, then key; NULL: too many to keep */
    LhCell *cells;        /* [ranks * cells_count] */
    uint64_t *sets;       /* [ranks * cells_count * words] */
    uint64_t *keys_of;    /* [segments * words] what a query segment must meet */
    uint64_t *all_of;     /* [segments * words] those of keys_of with which every pair exists */
    uint64_t *queries_of; /* [segments * words] what a key segment must */
    uint64_t *before;     /* [segments * words] of keys_of, the segments before: a state's */
    uint8_t *started;     /* [ops_count] */
    bool projects;        /* the program says how activations outside attention go with it */
    bool computes_layer;  /* it computes the layer outside attention itself */
    uint8_t *taken; /* [slots] if so: which given tensor, + 1, comes from an input slot; 0: none */
} LhSymbolicExec;

/* What a tensor's rows and contributions are. Tensors of one family derive from each other. */
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

static inline uint64_t *
lh_symbolic_set(const LhSymbolicExec *cover, const LhCell *cell)
{
    return &cover->sets[(size_t)(cell - cover->cells) * cover->words];
}

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
 * The number of a contribution in the sets of @family. The rows of a query slice take key segments;
 * the rows of a key-value slice take query segments, of each slice that shares its heads.
 */
static inline uint32_t
lh_symbolic_source(const LhSymbolicExec *cover, LhFamily family, LhHolding rows)
{
    if (family != LH_FAMILY_DKV)
        return rows.segment;
    return rows.segment * cover->replicas + rows.slice % cover->replicas;
}

/* The slice of the key-value heads that belongs to a slice of the query heads. */
static inline uint32_t
lh_symbolic_kv_slice(const LhSymbolicExec *cover, uint32_t slice)
{
    return slice / cover->replicas;
}

/* "segment 3", or "slice 1 of segment 3" of a program whose heads are cut; caller frees. */
char *lh_symbolic_rows_text(const LhSymbolicExec *cover, LhHolding rows);
/* The same of a contribution to the sets of @family in rows of slice @slice. */
char *lh_symbolic_source_text(const LhSymbolicExec *cover, LhFamily family, uint32_t source,
                              uint32_t slice);

/* The contributions that the mask wants for the rows of segment @segment. */
const uint64_t *lh_symbolic_complete(const LhSymbolicExec *cover, LhFamily family,
                                     uint32_t segment);

/* The same set of pairs of two segments of @rows rows, written in one way only. */
LhBlock lh_symbolic_normalise(LhMaskKind kind, int64_t shift, uint64_t rows);

/* What the program's mask says about query segment @q and key segment @k. LH_MASK_POSITIONS: some
 * pairs, which no mask in local indices says. */
LhBlock lh_symbolic_block(const LhSymbolicExec *cover, uint32_t q, uint32_t k);

/*
 * The cell of part @i of @region as @op finds it: NULL, with a finding, if nothing has been written
 * to it since its slot was allocated, or not the half that the region names, or only one half where
 * it names both; NULL without one if it is suspect. The second wants the rows of some segment in
 * it.
 */
LhCell *lh_symbolic_read(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i);
LhCell *lh_symbolic_read_rows(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                              uint32_t i);

/* What a cell of a tensor of this kind is normalised by. */
LhNorm lh_symbolic_norm(LhTensorKind kind, const LhCell *cell);

/* Part @i of a region, and what it is normalised by. */
typedef struct {
    const LhRegion *region;
    uint32_t i;
    LhNorm norm;
} LhAddend;

/*
 * Whether @from may be added to the cell @into of a tensor of @kind: if @fresh, an empty
 * accumulator, which then is normalised alike; else both must be terms of the row. Other kinds than
 * o and delta, and linear attention, have no normaliser. False, with a finding, if not.
 */
bool lh_symbolic_join_norm(LhSymbolicExec *cover, uint32_t op, const LhAddend *from,
                           LhTensorKind kind, bool fresh, LhCell *into);

/* Makes it an empty cell of @rows, written by @op; the second, of no rows in particular:
 * LH_ROW_ANY or LH_ROW_NONE. */
LhCell *lh_symbolic_write(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                          LhHolding rows);
LhCell *lh_symbolic_write_none(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                               uint32_t i, uint32_t row);

/*
 * Puts what @from holds (NULL: something suspect) into part @i of @region, written by @op. One half
 * joins the other one if that belongs to the same rows and contributions; else it is there alone.
 */
void lh_symbolic_put(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                     const LhCell *from);

/* into += from. False, with a finding about @target, if they share a contribution. */
bool lh_symbolic_merge(LhSymbolicExec *cover, uint32_t op, const LhRegion *target,
                       const LhCell *into, const LhCell *from);

/* What effects are made of. All that may be wrong is false or NULL, with a finding or because of an
 * earlier one. */

/* Accumulators that @op starts anew are empty before it does anything else. */
void lh_symbolic_start(LhSymbolicExec *cover, uint32_t op);

/* Part @i of an accumulator about to take contributions to @rows; the second refuses a finished
 * result. */
LhCell *lh_symbolic_open(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, uint32_t i,
                         LhHolding rows);
LhCell *lh_symbolic_open_unended(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                                 uint32_t i, LhHolding rows);

/* Adds contribution @source to a cell of @region. */
bool lh_symbolic_contribute(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                            const LhCell *cell, uint32_t source);

/* Makes part @part of an input what the placement says. */
void lh_symbolic_fill_input(LhSymbolicExec *cover, uint32_t rank, uint32_t slot, uint32_t part);

#define COVERAGE(op, slot, ...)                                                                    \
    lh_proof_find(cover->proof, LH_FINDING_COVERAGE,                                               \
                  (LhFindingPlace){ cover->proof->op_rank[op], op, (int32_t)(slot), LH_NONE },     \
                  __VA_ARGS__)
