/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of assignments. Each rank gathers the pieces of its head slices that its place computes,
 * attends, and sends results back to the homes of their rows, where they are merged. Messages go
 * straight from the rank that has a piece to the rank that needs it, round by round; rounds have
 * the same order on all ranks and wait for earlier ones only, so that every assignment ends.
 */
#pragma once

#include "synth/layout.h"

#define LH_SYNTH_ATTEND_MAX 4U
#define LH_SYNTH_STYLES 8

/* How an assignment becomes a program. */
typedef struct {
    LhSynthKernels kernels;
    uint32_t streams; /* that attend, up to LH_SYNTH_ATTEND_MAX: small calls fill a GPU together */
    bool early; /* inputs come slice by slice within a place, and results leave in stages of a turn;
                   else all at once, and behind the turn */
} LhSynthStyle;

/* All that a search tries. */
extern const LhSynthStyle lh_synth_styles[LH_SYNTH_STYLES];

/* The program of an assignment, an explicit one. Caller frees. */
LhProgram *lh_synth_emit(const LhSynthAssignment *state, LhSynthStyle style);
