/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of ranks goes: computing, or not, and why not. Every moment of a rank is accounted
 * for once, so that the parts add up to the makespan exactly.
 */
#pragma once

#include "sim/sim.h"

/* Beside the parts of idle time: the rank computes. */
#define LH_BUSY LH_IDLE_PARTS

#define LH_SPANS_KEPT 8 /* a power of two */

/* A stretch of a rank's past: what it did from one moment to another. */
typedef struct {
    LhTime from_ps, to_ps;
    uint8_t why; /* LhIdlePart or LH_BUSY */
} LhPastSpan;

typedef struct {
    uint8_t why; /* LhIdlePart or LH_BUSY, since accounted_ps */
    LhTime accounted_ps;
    LhPastSpan spans[LH_SPANS_KEPT]; /* the latest ones; spans_count of all so far */
    uint32_t spans_count;
    LhRankResult *result; /* borrowed: what is added up */
} LhIdleAccounting;

/* Accounts for the rank up to @now. */
void lh_idle_accounting_take(LhIdleAccounting *account, LhTime now);

/* From @now on the rank does something else. */
static inline void
lh_idle_accounting_change(LhIdleAccounting *account, LhTime now, uint8_t why)
{
    if (account->why == why)
        return;
    lh_idle_accounting_take(account, now);
    account->why = why;
}

/*
 * The rank has waited for @other and nothing moved: it was idle for whatever reason @other was
 * late. Where that one computed, the work is out of balance; where it was idle itself, its reason
 * is passed on, so that a slow link is charged to the link by everyone it holds up. Beyond what is
 * remembered of its past: imbalance.
 */
void lh_idle_accounting_wait(LhIdleAccounting *account, LhIdleAccounting *other, LhTime now);
