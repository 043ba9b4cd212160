/*
 * Programs of assignments. Each rank gathers the pieces of its head slices that its place computes,
 * attends, and sends results back to the homes of their rows, where they are merged. Messages go
 * straight from the rank that has a piece to the rank that needs it, round by round; rounds have
 * the same order on all ranks and wait for earlier ones only, so that every assignment ends.
 */
#pragma once

#include "synth/layout.h"

/* The program of an assignment, an explicit one. Caller frees. */
LhProgram *lh_synth_emit(const LhSynthState *state, LhSynthKernels kernels);
