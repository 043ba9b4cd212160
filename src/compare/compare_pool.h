/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several schedules at once: a pool of threads that plays the rows of a comparison. What comes out
 * does not depend on the number of threads, nor on which of them was first.
 */
#pragma once

#include "compare/compare.h"

/*
 * Plays the rows (of LhCompareRow *, none played, those refused among them) and sets their state
 * and result. Rows that take more than `within` times the shortest time of those that fit in memory
 * are left out, which some are found to do before they end: no order of threads changes that, since
 * the limit never rises. False if the task's progress asked to stop: rows that were not through by
 * then are interrupted.
 */
bool lh_compare_play_all(const LhSetup *setup, GPtrArray *rows, const LhCompareOptions *options);

/* Threads for so many simulations of @ranks ranks: what was asked for, or one for each core that
 * this process may use, as far as three quarters of the memory go. At least 1. */
guint lh_compare_threads(guint asked, guint simulations, uint32_t ranks);
