/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread pool that simulates the rows of a comparison. The result does not depend on the number of
 * threads or their order.
 */
#pragma once

#include "compare/compare.h"

/*
 * Simulates the rows (of LhCompareRow *, none simulated yet, refused ones included) and sets their
 * state and result. Rows that take more than `within` times the shortest time of those that fit in
 * memory are omitted, some before their run ends. The order of threads does not change the result,
 * since the limit never rises. False if the task's progress asked to stop; unfinished rows are then
 * interrupted.
 */
bool lh_compare_play_all(const LhSetup *setup, GPtrArray *rows, const LhCompareOptions *options);

/* Number of threads for @simulations of @ranks ranks: @asked, or one per core that this process may
 * use, limited by three quarters of the memory. At least 1. */
guint lh_compare_threads(guint asked, guint simulations, uint32_t ranks);
