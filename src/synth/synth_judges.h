/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Robustness test of the fastest programs found, under other conditions.
 */
#pragma once

#include "synth/synth_search.h"

/* Simulates @program, which the row borrows. Caller frees. */
LhCompareRow *lh_synth_play(const LhSynthSearch *s, const char *name, const LhProgram *program);

/* Simulates the program of a kept candidate. Caller frees. */
LhCompareRow *lh_synth_play_kept(const LhSynthSearch *s, const LhSynthCandidate *c,
                                 LhSynthStyle style);

/* Makes the program that wins under all judges the answer; without one the answer stays. Returns
 * its index among the kept candidates. */
uint32_t lh_synth_ask_judges(LhSynthSearch *s);
