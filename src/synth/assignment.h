/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An assignment maps every block to a place that computes it and a round by which its inputs have
 * arrived. Its cost: counters that a move updates in O(rounds), and an objective.
 *
 * Slot t of the network carries the inputs first needed by round t, and the results of rows whose
 * last block was computed in round t - 2. In a backward pass rows arrive again in the same rounds,
 * with do, lse and delta; dq leaves two slots later, dk and dv two slots after the last round that
 * needs their column.
 */
#pragma once

#include "synth/problem.h"

#define LH_SYNTH_ROUNDS_MAX 8U

/* Cost of a pass. */
typedef struct {
    /* Bytes by slot and place: [slot * places + place], rounds + 2 slots. */
    int64_t *in, *out;
    /* Compute time by round and place. Entry 0 is the work with all inputs at home, entry t + 1
     * that of round t. */
    int64_t *work_ps;
} LhSynthCounters;

typedef struct {
    const LhSynthProblem *problem; /* borrowed */
    uint32_t rounds;
    uint32_t *owners; /* [blocks] */
    uint8_t *turns;   /* [blocks]: round */
    /* Number of a place's blocks that need a chunk in a round: [((place * chunks + chunk) *
     * slices + slice) * rounds + round]. */
    uint32_t *rows, *columns;
    LhSynthCounters forward, backward; /* backward is 0 if there is no backward pass */
    int64_t *load_ps;                  /* [places]: total work */
} LhSynthAssignment;

/* The objective of an assignment: its time, plus small terms that guide the search. */
typedef struct {
    double mean_weight; /* weight of the mean time of the network */
    double load_weight; /* weight of the largest load */
} LhSynthWeights;

/* Returns the assignment of every block to the home of its row, in round 0. @rounds in [1,
 * LH_SYNTH_ROUNDS_MAX]. Caller frees. */
LhSynthAssignment *lh_synth_assignment_new(const LhSynthProblem *problem, uint32_t rounds);
void lh_synth_assignment_free(LhSynthAssignment *state);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSynthAssignment, lh_synth_assignment_free)

/* Moves block @block to place @owner and round @turn. */
void lh_synth_assignment_move(LhSynthAssignment *state, uint32_t block, uint32_t owner,
                              uint32_t turn);

/* The objective in picoseconds, approximate: communication and compute as a pipeline, plus the
 * weighted terms. */
double lh_synth_assignment_objective(const LhSynthAssignment *state, const LhSynthWeights *weights);

/* Bytes sent between places, in total. */
uint64_t lh_synth_assignment_bytes(const LhSynthAssignment *state);

/* Constructed initial assignments; all rounds are 0. */
typedef enum {
    LH_SYNTH_ROWS,      /* every row is computed at its home */
    LH_SYNTH_COLUMNS,   /* every column is computed at its home */
    LH_SYNTH_HEADS,     /* places share the slices of heads */
    LH_SYNTH_DIAGONALS, /* likewise, but blocks with both inputs at one place are computed there */
    LH_SYNTH_STARTS
} LhSynthStart;

/* "rows at home", "columns at home", "heads across places", ...; NULL-terminated. */
extern const char *const lh_synth_start_names[];

void lh_synth_assignment_start(LhSynthAssignment *state, LhSynthStart start);
