/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/totals.h"

void
lh_totals(const LhSimResult *result, LhTotals *totals)
{
    LhTotals t = { .span_ps = (LhWide)result->makespan_ps * result->ranks_count };

    for (uint32_t r = 0; r < result->ranks_count; r++) {
        const LhRankResult *rank = &result->ranks[r];

        t.busy_ps += rank->busy_ps;
        for (int part = 0; part < LH_IDLE_PARTS; part++)
            t.idle_ps[part] += rank->idle_ps[part];
        for (int tier = 0; tier < LH_TIERS; tier++) {
            t.exposed_ps += rank->idle_ps[LH_IDLE_COMM + tier];
            t.tier_bytes[tier] += rank->bytes_by_tier[tier];
        }
        t.sent_bytes += rank->bytes_sent;
        t.sent_bytes_max = MAX(t.sent_bytes_max, rank->bytes_sent);
        t.flops += rank->flops;
        if (rank->peak_bytes > t.peak_bytes) {
            t.peak_bytes = rank->peak_bytes;
            t.peak_rank = r;
        }
    }
    *totals = t;
}
