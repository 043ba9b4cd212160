/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each place does under an assignment: the chunks that it holds, the calls of attention that
 * its blocks are put together to, and when results are complete. From this the programs of its
 * ranks are written (generator.h).
 */
#pragma once

#include "synth/assignment.h"

#define LH_SYNTH_NONE UINT32_MAX
#define LH_SYNTH_LOCAL (-1) /* the turn of what needs nothing from other places */

/* Which kernels attend. */
typedef enum {
    LH_SYNTH_ACCUMULATE, /* attention_fwd: calls of the same rows add to one accumulator */
    LH_SYNTH_BLOCKS,     /* attention_block: each call has an output, and merge_lse joins them */
    LH_SYNTH_KERNELS
} LhSynthKernels;

/* When a call may run in a pass, and how much of it others wait for. */
typedef struct {
    int turn;       /* LH_SYNTH_LOCAL, or a round */
    double remote;  /* share of what it adds to that lives elsewhere; of two kinds, both shares */
    uint32_t stage; /* behind which its results may leave: turns are cut into some, which count on
                       from turn to turn */
} LhSynthWhen;

/* A rectangle of blocks of one slice: rows and columns that are neighbours in the layout. */
typedef struct {
    uint32_t slice;
    uint32_t row, rows, column, columns; /* places in the lists of rows and columns of the slice */
    LhSynthWhen forward, backward;       /* the latter of the backward pass, if there is one */
    uint32_t out;                        /* part of the block slot where its output begins */
} LhSynthCall;

/* Indices of tables are slice * chunks + chunk (or + place in a list); slices are a GPU's. */
typedef struct {
    uint32_t *rows, *columns;             /* lists: chunks that are needed, ascending */
    uint32_t *rows_count, *columns_count; /* [slices] */
    uint32_t *row_at, *column_at;         /* parts in the layout; LH_SYNTH_NONE: not needed */
    uint32_t q_parts, kv_parts, out_parts;
    uint32_t *row_turn, *column_turn; /* first round that needs a chunk */
    uint32_t *result_at;              /* where the place's result for a row is */
    uint32_t *result_stage;           /* the last call's */
    GArray *calls;                    /* of LhSynthCall, by forward.turn */
    /* Of the backward pass; else NULL. */
    uint32_t *dq_stage, *dkv_stage; /* the last calls' of rows and of columns */
    GArray *back_calls;             /* the same, by backward.turn */
} LhSynthSite;

typedef struct {
    const LhSynthAssignment *state; /* borrowed, as is ... */
    const LhSynthProblem *problem;
    LhSynthKernels kernels;
    uint32_t stages;    /* of a turn */
    LhSynthSite *sites; /* [places] */
} LhSynthLayout;

/* @stages at least 1. Caller frees. */
LhSynthLayout *lh_synth_layout_new(const LhSynthAssignment *state, LhSynthKernels kernels,
                                   uint32_t stages);
void lh_synth_layout_free(LhSynthLayout *layout);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSynthLayout, lh_synth_layout_free)
