/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates: what is annealed, how it is drawn, and which are kept.
 */
#pragma once

#include "synth/synth_search.h"

/* Fills the portfolio: every grain with several rounds and weights, in an order that the seed
 * draws. */
void lh_synth_make_portfolio(LhSynthSearch *s);

/* Draws candidates, anneals and simulates them, batch by batch, until the budget is used up. */
void lh_synth_try_all(LhSynthSearch *s);
