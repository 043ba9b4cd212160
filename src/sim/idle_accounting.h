/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time accounting of ranks: busy, or idle and why. Every moment of a rank is counted exactly once,
 * so the parts add up to the makespan exactly.
 */
#pragma once

#include "sim/sim.h"

/* The rank computes; an additional value beside LhIdlePart. */
#define LH_BUSY LH_IDLE_PARTS

#define LH_SPANS_KEPT 8 /* a power of two */

/* An interval of a rank's past, and what the rank did in it. */
typedef struct {
    LhTime from_ps, to_ps;
    uint8_t why; /* LhIdlePart or LH_BUSY */
} LhPastSpan;

typedef struct {
    uint8_t why; /* LhIdlePart or LH_BUSY, since accounted_ps */
    LhTime accounted_ps;
    LhPastSpan spans[LH_SPANS_KEPT]; /* ring buffer of the latest intervals; spans_count counts all
                                        so far */
    uint32_t spans_count;
    LhRankResult *result; /* borrowed: receives the sums */
} LhIdleAccounting;

/* Accounts for the rank's time up to @now. */
void lh_idle_accounting_take(LhIdleAccounting *account, LhTime now);

/* Changes what the rank does to @why, from @now on. */
static inline void
lh_idle_accounting_change(LhIdleAccounting *account, LhTime now, uint8_t why)
{
    if (account->why == why)
        return;
    lh_idle_accounting_take(account, now);
    account->why = why;
}

/*
 * The rank has waited for @other while none of its own data was in flight: its idle time is
 * attributed to whatever delayed @other. Where @other computed, the time is load imbalance. Where
 * @other was idle, its own reason is passed on, so that a slow link is charged to the link by every
 * rank it delays. Time before the oldest remembered interval of @other counts as imbalance.
 */
void lh_idle_accounting_wait(LhIdleAccounting *account, LhIdleAccounting *other, LhTime now);
