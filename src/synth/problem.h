/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The problem that a search solves: the blocks of attention, the homes of their inputs, their
 * compute times, and the cost of moving data. Tokens have homes at places, which are the nodes of
 * the cluster, or the GPUs of one node. GPU u of every place has group u of the heads, so the GPUs
 * of a place always have equal work; a head group is split into `slices` slices. A block is a row
 * chunk of queries with a column chunk of keys, in one slice, on all GPUs of a place.
 */
#pragma once

#include "scenario/setup.h"

#define LH_SYNTH_PLACES_MAX 64U

/* Granularity of the blocks. */
typedef struct {
    bool zigzag;     /* homes are zigzag halves; otherwise contiguous tokens */
    uint32_t slices; /* of the heads of a GPU */
    uint32_t fine;   /* chunks per place's contiguous tokens */
} LhSynthGrain;

typedef struct {
    uint32_t row, column; /* chunks */
    uint32_t slice;
    uint64_t pairs;
    LhTime work_ps; /* on each GPU of a place without slow ones, as priced by the simulator */
    LhTime back_ps; /* the same for the backward pass; 0: none */
} LhSynthBlock;

/* Home of a segment. */
typedef struct {
    uint32_t rank, part;
} LhSynthSeat;

typedef struct {
    const LhSetup *setup; /* borrowed */
    LhSynthGrain grain;
    bool backward;   /* both passes run */
    LhProgram *form; /* placement, slices, inputs and outputs; no ops */
    uint32_t places, gpus;
    uint32_t kv_slices;      /* of a GPU; divides grain.slices */
    uint32_t segments;       /* of all ranks, in token order */
    uint32_t chunks, pieces; /* segments per chunk */
    uint64_t segment_tokens;
    LhSynthSeat *seats; /* [segments] */
    uint32_t *homes;    /* [chunks]: places */
    LhSynthBlock *blocks;
    uint32_t blocks_count;
    /* The blocks of each (row, slice) one after the other, and of each (column, slice): list
     * [first[i], first[i + 1]) of index i = chunk * slices + slice. */
    uint32_t *row_first, *row_blocks, *column_first, *column_blocks;
    /* Bytes of a chunk in one slice, for all GPUs of a place: inputs, and results as sent. */
    uint64_t q_bytes, kv_bytes, result_bytes;
    uint64_t do_bytes; /* also for the backward pass, including two statistics; dq and dk, dv have
                          the sizes of q and k, v */
    double *byte_ps;   /* [places]: time per byte into or out of a place */
    double *slowdown;  /* [places]: factor of its slowest GPU, which sets the pace; 1: none */
} LhSynthProblem;

/* Checks that the scenario supports synthesis; fails with LH_ERROR_NO or LH_ERROR_INPUT. */
bool lh_synth_check(const LhSetup *setup, GError **error);

/* Returns NULL if the sizes of the scenario do not allow the grain. The setup has passed
 * lh_synth_check(). Caller frees. */
LhSynthProblem *lh_synth_problem_new(const LhSetup *setup, LhSynthGrain grain);
void lh_synth_problem_free(LhSynthProblem *problem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSynthProblem, lh_synth_problem_free)

/* The places of a setup, and the GPUs of each. */
typedef struct {
    uint32_t places, gpus;
} LhSynthPlaces;
LhSynthPlaces lh_synth_places(const LhSetup *setup);

/* The slice of k and v that serves slice @slice of q, on the same GPU. */
static inline uint32_t
lh_synth_kv_slice(const LhSynthProblem *p, uint32_t slice)
{
    return slice * p->kv_slices / p->grain.slices;
}

/* Whether both inputs of a block live at @place. */
static inline bool
lh_synth_is_local(const LhSynthProblem *p, const LhSynthBlock *block, uint32_t place)
{
    return p->homes[block->row] == place && p->homes[block->column] == place;
}

/* The time that work takes on the GPUs of @place. */
static inline LhTime
lh_synth_work(const LhSynthProblem *p, LhTime work_ps, uint32_t place)
{
    return p->slowdown[place] > 1 ? (LhTime)((double)work_ps * p->slowdown[place]) : work_ps;
}

/* Whether the mask of calls is given by token positions. */
static inline bool
lh_synth_by_position(const LhSynthProblem *p)
{
    return !lh_mask_is_plain(&p->form->params.mask);
}

/* Attention arguments of @rows chunks from @row on with @columns chunks from @column on. With a
 * mask by positions consecutive chunks are adjacent in the sequence. */
LhKernelArgs lh_synth_args(const LhSynthProblem *p, uint32_t row, uint32_t rows, uint32_t column,
                           uint32_t columns);
