/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges: the fastest programs that were found, played under other circumstances.
 */
#pragma once

#include "synth/synth_search.h"

/* Plays @program, which the row borrows. Caller frees. */
LhCompareRow *lh_synth_play(const LhSynthSearch *s, const char *name, const LhProgram *program);

/* A row of the program of a candidate that was kept. Caller frees. */
LhCompareRow *lh_synth_play_kept(const LhSynthSearch *s, const LhSynthCandidate *c,
                                 LhSynthStyle style);

/* Of the fastest programs, that which holds under all judges is the answer; else it stays. Returns
 * which of the candidates that were kept it is. */
uint32_t lh_synth_ask_judges(LhSynthSearch *s);
