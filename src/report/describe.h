/*
 * What is simulated, in words.
 */
#pragma once

#include "plan/compare.h"

/* Lines that say what is simulated, on what, with which options, and what is left out. */
void lh_describe_case(const LhSetup *setup, GString *out);

/* "rank 0 needs 385 GiB of attention buffers and at least 1.7 GiB of weights, a GPU has 80 GiB";
 * caller frees. */
char *lh_describe_memory_limit(const LhSetup *setup, const LhTotals *totals);

/* One line on the schedules that are not of this kind of attention; nothing if there are none. */
void lh_describe_left_out(const LhSetup *setup, GString *out);
