/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An assignment of every block to a place that computes it and a round in which its inputs have
 * arrived, and what that costs: counters that a move changes in O(rounds), and an objective. Slot t
 * of the network carries the inputs that round t needs first, and the results of rows whose last
 * block was computed in round t - 2. In a backward pass rows come in the same rounds again, with
 * do, lse and delta; dq leaves two slots behind that, dk and dv two slots behind the last round
 * that needs their column.
 */
#pragma once

#include "synth/problem.h"

#define LH_SYNTH_ROUNDS_MAX 8U

/* What a pass costs. */
typedef struct {
    /* Bytes by slot and place: [slot * places + place], rounds + 2 slots. */
    int64_t *in, *out;
    /* Time by round and place; entry 0 is what has all its inputs at home, entry t + 1 round t. */
    int64_t *work_ps;
} LhSynthCounters;

typedef struct {
    const LhSynthProblem *problem; /* borrowed */
    uint32_t rounds;
    uint32_t *owners; /* [blocks] */
    uint8_t *turns;   /* [blocks]: rounds */
    /* Blocks of a place that need a chunk in a round: [((place * chunks + chunk) * slices + slice)
     * * rounds + round]. */
    uint32_t *rows, *columns;
    LhSynthCounters forward, backward; /* the latter 0 where there is no such pass */
    int64_t *load_ps;                  /* [places]: the sum of all work */
} LhSynthAssignment;

/* What an assignment is judged by: its time, and beside it a little of what makes others good. */
typedef struct {
    double mean_weight; /* of the mean time of the network */
    double load_weight; /* of the largest load */
} LhSynthWeights;

/* Every block at the home of its row, in round 0. @rounds in [1, LH_SYNTH_ROUNDS_MAX]. Caller
 * frees. */
LhSynthAssignment *lh_synth_assignment_new(const LhSynthProblem *problem, uint32_t rounds);
void lh_synth_assignment_free(LhSynthAssignment *state);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSynthAssignment, lh_synth_assignment_free)

/* Moves block @block. */
void lh_synth_assignment_move(LhSynthAssignment *state, uint32_t block, uint32_t owner,
                              uint32_t turn);

/* Picoseconds, about: communication and compute as a pipeline, plus the weighted terms. */
double lh_synth_assignment_objective(const LhSynthAssignment *state, const LhSynthWeights *weights);

/* Bytes that all places send to others. */
uint64_t lh_synth_assignment_bytes(const LhSynthAssignment *state);

/* Constructed assignments, to begin from; all rounds are 0. */
typedef enum {
    LH_SYNTH_ROWS,      /* every row is computed where it lives */
    LH_SYNTH_COLUMNS,   /* every column is */
    LH_SYNTH_HEADS,     /* slices of heads are shared by the places */
    LH_SYNTH_DIAGONALS, /* likewise, but what has its inputs at one place is computed there */
    LH_SYNTH_STARTS
} LhSynthStart;

/* "rows at home", "columns at home", "heads across places", ...; NULL-terminated. */
extern const char *const lh_synth_start_names[];

void lh_synth_assignment_start(LhSynthAssignment *state, LhSynthStart start);
