/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated annealing of an assignment (assignment.h). Moves are single blocks, parts of rows and
 * columns at one place, and swaps; the temperature falls.
 */
#pragma once

#include "synth/assignment.h"

typedef struct {
    uint64_t moves; /* number of moves tried */
    uint64_t seed;
    LhSynthWeights weights;
    double hot, cold; /* initial and final temperature, relative to the initial objective */
} LhSynthCooling;

/* Anneals and leaves @state at the best assignment found. Returns its objective. Deterministic
 * for the same state and cooling. */
double lh_synth_anneal(LhSynthAssignment *state, const LhSynthCooling *cooling);
