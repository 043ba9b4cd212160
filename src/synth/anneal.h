/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated annealing of an assignment (assignment.h): single blocks, parts of rows and columns
 * that one place has, and swaps move while the temperature falls.
 */
#pragma once

#include "synth/assignment.h"

typedef struct {
    uint64_t moves; /* that are tried */
    uint64_t seed;
    LhSynthWeights weights;
    double hot, cold; /* the temperature at the beginning and at the end, as shares of the
                         objective before it */
} LhSynthCooling;

/* Leaves @state at the best assignment on the way. Returns its objective; the same for the same
 * state and cooling. */
double lh_synth_anneal(LhSynthAssignment *state, const LhSynthCooling *cooling);
