/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/run_counts.h"

#include <string.h>

/* The rank's results if its open intervals ended now. */
static LhRankResult
result_so_far(const LhEngine *e, uint32_t r)
{
    const LhSimRank *rank = &e->ranks[r];
    LhRankResult result = e->results[r];
    const LhTime open_ps = e->now - rank->account.accounted_ps;

    if (rank->account.why == LH_BUSY)
        result.busy_ps += open_ps;
    else
        result.idle_ps[rank->account.why] += open_ps;
    if (rank->communicating > 0)
        result.comm_ps += e->now - rank->communicating_ps;
    return result;
}

void
lh_run_counts_clear(LhRunCounts *c)
{
    g_free(c->host_ps);
    g_free(c->ranks);
    g_free(c->exposed_ps);
    g_free(c->links);
    g_free(c->whole_bytes);
    for (uint32_t i = 0; i < LH_APARTS; i++) {
        g_free(c->apart[i].sent_bytes);
        g_free(c->apart[i].link_bytes);
    }
    *c = (LhRunCounts){ 0 };
}

void
lh_run_counts_take(LhRunCounts *c, const LhEngine *e)
{
    const gsize links = e->network->links_count;

    lh_run_counts_clear(c);
    c->events = e->events;
    c->ops = e->ops;
    c->host_ps = g_new(LhTime, e->ranks_count);
    c->ranks = g_new(LhRankResult, e->ranks_count);
    c->exposed_ps = g_malloc0(e->ranks_count * sizeof(*c->exposed_ps));
    for (uint32_t r = 0; r < e->ranks_count; r++) {
        c->host_ps[r] = e->ranks[r].host_ps;
        c->ranks[r] = result_so_far(e, r);
        if (lh_engine_exposed(e, &e->ranks[r]) != NULL)
            memcpy(c->exposed_ps[r], e->exposed[r]->exposed_ps, sizeof(c->exposed_ps[r]));
    }
    c->links = g_new(LhWide, links);
    for (uint32_t i = 0; i < links; i++)
        c->links[i] = lh_flows_link_bytes(e->moving.flows, i);
    for (uint32_t i = 0; i < LH_APARTS && e->folded; i++) {
        c->apart[i].sent_bytes =
            g_memdup2(e->apart[i].sent_bytes, (gsize)e->ranks_count * LH_TIERS * sizeof(uint64_t));
        c->apart[i].link_bytes = g_memdup2(e->apart[i].link_bytes, links * sizeof(uint64_t));
    }
    if (e->folded)
        c->whole_bytes = g_memdup2(e->whole_bytes, links * sizeof(uint64_t));
}

/* Adds to each number @times its increase since @before. */
static void
extrapolate(uint64_t *numbers, const uint64_t *before, gsize count, uint64_t times)
{
    for (gsize i = 0; i < count; i++)
        numbers[i] += times * (numbers[i] - before[i]);
}

static void
grow_rank(LhEngine *e, uint32_t r, const LhRankResult *before, uint64_t times)
{
    const LhRankResult now = result_so_far(e, r);
    LhRankResult *result = &e->results[r];

    result->busy_ps += (LhTime)times * (now.busy_ps - before->busy_ps);
    for (int i = 0; i < LH_IDLE_PARTS; i++)
        result->idle_ps[i] += (LhTime)times * (now.idle_ps[i] - before->idle_ps[i]);
    result->comm_ps += (LhTime)times * (now.comm_ps - before->comm_ps);
    extrapolate(&result->flops, &before->flops, 1, times);
    extrapolate(&result->dense_flops, &before->dense_flops, 1, times);
    extrapolate(&result->bytes_sent, &before->bytes_sent, 1, times);
    extrapolate(result->bytes_by_tier, before->bytes_by_tier, LH_TIERS, times);
}

static void
grow_exposed(LhExposed *exposed, const LhTime before_ps[LH_EXPOSED_DIMENSIONS], uint64_t times)
{
    for (uint32_t d = 0; exposed != NULL && d < LH_EXPOSED_DIMENSIONS; d++)
        exposed->exposed_ps[d] += (LhTime)times * (exposed->exposed_ps[d] - before_ps[d]);
}

void
lh_run_counts_grow(LhEngine *e, const LhRunCounts *before, uint64_t times)
{
    const gsize links = e->network->links_count;

    extrapolate(&e->events, &before->events, 1, times);
    extrapolate(&e->ops, &before->ops, 1, times);
    for (uint32_t r = 0; r < e->ranks_count; r++) {
        grow_rank(e, r, &before->ranks[r], times);
        grow_exposed(lh_engine_exposed(e, &e->ranks[r]), before->exposed_ps[r], times);
    }
    for (uint32_t i = 0; i < links; i++) {
        const LhWide grown = lh_flows_link_bytes(e->moving.flows, i) - before->links[i];

        lh_flows_count_link(e->moving.flows, i, times * grown);
    }
    for (uint32_t i = 0; i < LH_APARTS && e->folded; i++) {
        extrapolate(e->apart[i].sent_bytes, before->apart[i].sent_bytes,
                    (gsize)e->ranks_count * LH_TIERS, times);
        extrapolate(e->apart[i].link_bytes, before->apart[i].link_bytes, links, times);
    }
    if (e->folded)
        extrapolate(e->whole_bytes, before->whole_bytes, links, times);
}
