/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a schedule is searched for: which blocks of attention there are, where their inputs live,
 * what they take, and what it costs to move them. Tokens have homes by places, which are the nodes
 * of the cluster, or the GPUs of one node. GPU u of every place has group u of the heads, so that
 * the GPUs of a place always have equal work; a head group is cut into `slices` slices. A block is
 * a row chunk of queries with a column chunk of keys, in one slice on all GPUs of a place.
 */
#pragma once

#include "scenario/setup.h"

#define LH_SYNTH_PLACES_MAX 64U

/* How fine the pieces are that the search deals out. */
typedef struct {
    bool zigzag;     /* homes are zigzag halves; else contiguous tokens */
    uint32_t slices; /* of the heads of a GPU */
    uint32_t fine;   /* chunks that a place's contiguous tokens are cut into */
} LhSynthGrain;

typedef struct {
    uint32_t row, column; /* chunks */
    uint32_t slice;
    uint64_t pairs;
    LhTime work_ps; /* on each GPU of a place without slow ones, as the simulator prices it */
    LhTime back_ps; /* the same, of the backward pass; 0: there is none */
} LhSynthBlock;

/* Where a segment lives. */
typedef struct {
    uint32_t rank, part;
} LhSynthSeat;

typedef struct {
    const LhSetup *setup; /* borrowed */
    LhSynthGrain grain;
    bool backward;   /* both passes are run */
    LhProgram *form; /* placement, slices, inputs and outputs; no ops */
    uint32_t places, gpus;
    uint32_t kv_slices;      /* of a GPU; divides grain.slices */
    uint32_t segments;       /* of all ranks, in the order of tokens */
    uint32_t chunks, pieces; /* a chunk is so many segments in a row */
    uint64_t segment_tokens;
    LhSynthSeat *seats; /* [segments] */
    uint32_t *homes;    /* [chunks]: places */
    LhSynthBlock *blocks;
    uint32_t blocks_count;
    /* The blocks of each (row, slice) one after the other, and of each (column, slice): list
     * [first[i], first[i + 1]) of index i = chunk * slices + slice. */
    uint32_t *row_first, *row_blocks, *column_first, *column_blocks;
    /* Of a chunk in one slice, for all GPUs of a place: inputs and results as they travel. */
    uint64_t q_bytes, kv_bytes, result_bytes;
    uint64_t do_bytes; /* and of the backward pass, with two statistics; dq and dk, dv have the
                          sizes of q and k, v */
    double *byte_ps;   /* [places]: time for a byte into or out of a place */
    double *slowdown;  /* [places]: of its slowest GPU, whose work is the others', too; 1: none */
} LhSynthProblem;

/* Why the scenario has no synthesis: LH_ERROR_NO or LH_ERROR_INPUT. */
bool lh_synth_check(const LhSetup *setup, GError **error);

/* NULL if the sizes of the scenario do not allow the grain. The setup passes lh_synth_check().
 * Caller frees. */
LhSynthProblem *lh_synth_problem_new(const LhSetup *setup, LhSynthGrain grain);
void lh_synth_problem_free(LhSynthProblem *problem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSynthProblem, lh_synth_problem_free)

/* Places of a setup, and the GPUs of each. */
typedef struct {
    uint32_t places, gpus;
} LhSynthPlaces;
LhSynthPlaces lh_synth_places(const LhSetup *setup);

/* The slice of k and v that goes with slice @slice of q, on the same GPU. */
static inline uint32_t
lh_synth_kv_slice(const LhSynthProblem *p, uint32_t slice)
{
    return slice * p->kv_slices / p->grain.slices;
}

/* Whether a block's inputs live where @place is. */
static inline bool
lh_synth_is_local(const LhSynthProblem *p, const LhSynthBlock *block, uint32_t place)
{
    return p->homes[block->row] == place && p->homes[block->column] == place;
}

/* What work takes on the GPUs of @place. */
static inline LhTime
lh_synth_work(const LhSynthProblem *p, LhTime work_ps, uint32_t place)
{
    return p->slowdown[place] > 1 ? (LhTime)((double)work_ps * p->slowdown[place]) : work_ps;
}

/* Whether calls say their pairs by the positions of tokens. */
static inline bool
lh_synth_by_position(const LhSynthProblem *p)
{
    return !lh_mask_is_plain(&p->form->params.mask);
}

/* The arguments of attention of @rows chunks from @row on with @columns chunks from @column on. By
 * position, chunks in a row are neighbours in the sequence. */
LhKernelArgs lh_synth_args(const LhSynthProblem *p, uint32_t row, uint32_t rows, uint32_t column,
                           uint32_t columns);
