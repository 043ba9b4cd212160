/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time accounting of ranks: busy, or idle and why. Every moment of a rank is counted exactly once,
 * so the parts add up to the makespan exactly.
 */
#pragma once

#include "sim/sim.h"

/* The rank computes; an additional value beside LhIdlePart. */
#define LH_BUSY LH_IDLE_PARTS

#define LH_SPANS_KEPT 8    /* a power of two */
#define LH_SPAN_WHY_BITS 3 /* of a packed interval: LhIdlePart or LH_BUSY */

G_STATIC_ASSERT(LH_BUSY < 1 << LH_SPAN_WHY_BITS);
G_STATIC_ASSERT(LH_TIME_LONGEST <= INT64_MAX >> (LH_SPAN_WHY_BITS - 1));

/*
 * A rank's past is a sequence of intervals without gaps. The latest are remembered, in one cache
 * line: each as its end and what the rank did in it.
 */
typedef struct {
    uint64_t spans[LH_SPANS_KEPT]; /* ring buffer of end << LH_SPAN_WHY_BITS | why */
    LhTime spans_from_ps;          /* when the oldest remembered interval began */
    LhTime accounted_ps;           /* the end of the latest */
    uint32_t spans_count;          /* all so far */
    uint8_t why;                   /* LhIdlePart or LH_BUSY, since accounted_ps */
} LhIdleAccounting;

/* An interval of a rank's past. */
typedef struct {
    LhTime from_ps, to_ps;
    uint8_t why;
} LhPastSpan;

/* The number of the oldest interval remembered; the latest has number spans_count - 1. */
static inline uint32_t
lh_idle_accounting_oldest(const LhIdleAccounting *account)
{
    return account->spans_count > LH_SPANS_KEPT ? account->spans_count - LH_SPANS_KEPT : 0;
}

static inline LhTime
lh_idle_accounting_span_end(const LhIdleAccounting *account, uint32_t number)
{
    return (LhTime)(account->spans[number % LH_SPANS_KEPT] >> LH_SPAN_WHY_BITS);
}

/* Interval @number, which is remembered. */
static inline LhPastSpan
lh_idle_accounting_span(const LhIdleAccounting *account, uint32_t number)
{
    return (LhPastSpan){
        .from_ps = number == lh_idle_accounting_oldest(account)
                       ? account->spans_from_ps
                       : lh_idle_accounting_span_end(account, number - 1),
        .to_ps = lh_idle_accounting_span_end(account, number),
        .why = account->spans[number % LH_SPANS_KEPT] & ((1 << LH_SPAN_WHY_BITS) - 1),
    };
}

/* Accounts for the rank's time up to @now, in the sums of @result. */
void lh_idle_accounting_take(LhIdleAccounting *account, LhRankResult *result, LhTime now);

/* Changes what the rank does to @why, from @now on. */
static inline void
lh_idle_accounting_change(LhIdleAccounting *account, LhRankResult *result, LhTime now, uint8_t why)
{
    if (account->why == why)
        return;
    lh_idle_accounting_take(account, result, now);
    account->why = why;
}

/*
 * The rank has waited for @other while none of its own data was in flight: its idle time is
 * attributed to whatever delayed @other. Where @other computed, the time is load imbalance. Where
 * @other was idle, its own reason is passed on, so that a slow link is charged to the link by every
 * rank it delays. Time before the oldest remembered interval of @other counts as imbalance.
 */
void lh_idle_accounting_wait(LhIdleAccounting *account, LhRankResult *result,
                             LhIdleAccounting *other, LhRankResult *other_result, LhTime now);
