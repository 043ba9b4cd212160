/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/idle_accounting.h"

static inline void
spend(LhIdleAccounting *a, uint8_t why, LhTime from, LhTime to)
{
    if (why == LH_BUSY)
        a->result->busy_ps += to - from;
    else
        a->result->idle_ps[why] += to - from;
    a->spans[a->spans_count++ % LH_SPANS_KEPT] = (LhPastSpan){ from, to, why };
    a->accounted_ps = to;
}

void
lh_idle_accounting_take(LhIdleAccounting *a, LhTime now)
{
    if (a->accounted_ps < now)
        spend(a, a->why, a->accounted_ps, now);
}

void
lh_idle_accounting_wait(LhIdleAccounting *a, LhIdleAccounting *other, LhTime now)
{
    LhTime from = a->accounted_ps;
    uint32_t oldest;

    lh_idle_accounting_take(other, now);
    oldest = other->spans_count > LH_SPANS_KEPT ? other->spans_count - LH_SPANS_KEPT : 0;
    for (uint32_t i = oldest; i < other->spans_count; i++) {
        const LhPastSpan span = other->spans[i % LH_SPANS_KEPT];

        if (span.to_ps <= from)
            continue;
        if (span.from_ps > from)
            spend(a, LH_IDLE_IMBALANCE, from, span.from_ps);
        spend(a, span.why == LH_BUSY ? LH_IDLE_IMBALANCE : span.why, a->accounted_ps, span.to_ps);
        from = span.to_ps;
    }
    lh_idle_accounting_take(a, now);
}
