/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates of the search: drawing, annealing, and keeping the best.
 */
#pragma once

#include "synth/synth_search.h"

/* Fills the portfolio: every grain with several rounds and weights, in an order drawn from the
 * seed. */
void lh_synth_make_portfolio(LhSynthSearch *s);

/* Draws, anneals and simulates candidates, batch by batch, until the budget is used up. */
void lh_synth_try_all(LhSynthSearch *s);
