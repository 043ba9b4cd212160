/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/idle_accounting.h"

static inline void
spend(LhIdleAccounting *a, LhRankResult *result, uint8_t why, LhTime to)
{
    const LhTime spent_ps = to - a->accounted_ps;
    uint64_t *span = &a->spans[a->spans_count % LH_SPANS_KEPT];

    if (why == LH_BUSY)
        result->busy_ps += spent_ps;
    else
        result->idle_ps[why] += spent_ps;
    if (a->spans_count >= LH_SPANS_KEPT)
        a->spans_from_ps = (LhTime)(*span >> LH_SPAN_WHY_BITS);
    *span = (uint64_t)to << LH_SPAN_WHY_BITS | why;
    a->spans_count++;
    a->accounted_ps = to;
}

void
lh_idle_accounting_take(LhIdleAccounting *a, LhRankResult *result, LhTime now)
{
    if (a->accounted_ps < now)
        spend(a, result, a->why, now);
}

void
lh_idle_accounting_wait(LhIdleAccounting *a, LhRankResult *result, LhIdleAccounting *other,
                        LhRankResult *other_result, LhTime now)
{
    lh_idle_accounting_take(other, other_result, now);
    for (uint32_t i = lh_idle_accounting_oldest(other); i < other->spans_count; i++) {
        const LhPastSpan span = lh_idle_accounting_span(other, i);

        if (span.to_ps <= a->accounted_ps)
            continue;
        if (span.from_ps > a->accounted_ps)
            spend(a, result, LH_IDLE_IMBALANCE, span.from_ps);
        spend(a, result, span.why == LH_BUSY ? LH_IDLE_IMBALANCE : span.why, span.to_ps);
    }
    lh_idle_accounting_take(a, result, now);
}
