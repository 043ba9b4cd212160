/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of each place under an assignment: the chunks that it holds, the calls of attention that
 * its blocks are combined into, and when results are complete. The programs of its ranks are
 * written from this (generator.h).
 */
#pragma once

#include "synth/assignment.h"

#define LH_SYNTH_NONE UINT32_MAX
#define LH_SYNTH_LOCAL (-1) /* the turn of work that needs nothing from other places */

/* The attention kernels. */
typedef enum {
    LH_SYNTH_ACCUMULATE, /* attention_fwd: calls of the same rows add to one accumulator */
    LH_SYNTH_BLOCKS,     /* attention_block: each call has an output, joined by merge_lse */
    LH_SYNTH_KERNELS
} LhSynthKernels;

/* When a call may run in a pass, and how much of its result goes to other places. */
typedef struct {
    int turn;       /* LH_SYNTH_LOCAL, or a round */
    double remote;  /* remote share of what it adds to; with two kinds of results the sum of both
                       shares */
    uint32_t stage; /* stage after which its results may leave: each turn is split into stages,
                       numbered across turns */
} LhSynthWhen;

/* A rectangle of blocks of one slice: rows and columns that are adjacent in the layout. */
typedef struct {
    uint32_t slice;
    uint32_t row, rows, column, columns; /* indices in the slice's lists of rows and columns */
    LhSynthWhen forward, backward;       /* backward only if there is a backward pass */
    uint32_t out;                        /* part of the block slot at which its output begins */
} LhSynthCall;

/* Tables are indexed by slice * chunks + chunk (or + list index); slices are those of a GPU. */
typedef struct {
    uint32_t *rows, *columns;             /* lists of needed chunks, ascending */
    uint32_t *rows_count, *columns_count; /* [slices] */
    uint32_t *row_at, *column_at;         /* parts in the layout; LH_SYNTH_NONE: not needed */
    uint32_t q_parts, kv_parts, out_parts;
    uint32_t *row_turn, *column_turn; /* first round that needs a chunk */
    uint32_t *result_at;              /* part of the place's result for a row */
    uint32_t *result_stage;           /* stage of the last call that adds to it */
    GArray *calls;                    /* of LhSynthCall, by forward.turn */
    /* For the backward pass; otherwise NULL. */
    uint32_t *dq_stage, *dkv_stage; /* stages of the last calls that add to rows and to columns */
    GArray *back_calls;             /* the same calls, by backward.turn */
} LhSynthSite;

typedef struct {
    const LhSynthAssignment *state; /* borrowed, like ... */
    const LhSynthProblem *problem;
    LhSynthKernels kernels;
    uint32_t stages;    /* per turn */
    LhSynthSite *sites; /* [places] */
} LhSynthLayout;

/* @stages >= 1. Caller frees. */
LhSynthLayout *lh_synth_layout_new(const LhSynthAssignment *state, LhSynthKernels kernels,
                                   uint32_t stages);
void lh_synth_layout_free(LhSynthLayout *layout);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSynthLayout, lh_synth_layout_free)
