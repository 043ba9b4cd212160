/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of assignments. Each rank gathers the pieces of its head slices that its place computes,
 * attends, and sends results back to the homes of their rows, where they are merged. Messages go
 * directly from the rank that has a piece to the rank that needs it, round by round. Rounds have
 * the same order on all ranks and wait only for earlier ones, so no assignment can deadlock.
 */
#pragma once

#include "synth/layout.h"

#define LH_SYNTH_ATTEND_MAX 4U
#define LH_SYNTH_STYLES 8

/* How an assignment is turned into a program. */
typedef struct {
    LhSynthKernels kernels;
    uint32_t streams; /* for attention, up to LH_SYNTH_ATTEND_MAX: small calls share a GPU */
    bool early; /* inputs arrive slice by slice within a place, and results leave in stages of a
                   turn; otherwise all at once, and after the turn */
} LhSynthStyle;

/* All styles that a search tries. */
extern const LhSynthStyle lh_synth_styles[LH_SYNTH_STYLES];

/* Returns the program of an assignment, in explicit form. Caller frees. */
LhProgram *lh_synth_emit(const LhSynthAssignment *state, LhSynthStyle style);
