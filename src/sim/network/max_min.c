/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max-min fair sharing, solved locally.
 *
 * A rate allocation is max-min fair exactly when every flow has a bottleneck: a saturated link on
 * which no other flow is faster. So after a start or an end only flows whose bottleneck is broken
 * need new rates. These form the set. The set is solved by progressive filling with all other flows
 * fixed. Then the links it touched are checked, flows whose bottleneck is broken join the set, and
 * the solve repeats until no flow joins.
 *
 * Most links cannot limit any flow: a flow's rate is at most the capacity of its narrowest link,
 * and a link that can carry that much of each of its flows at once is slack. Slack links are left
 * out of the solve.
 */
#include "sim/network/max_min.h"

#include <string.h>

#define RELATIVE_SLACK 1e-9

static inline bool
in_set(const LhFlows *f, const LhFlow *flow)
{
    return flow->epoch == f->epoch;
}

static inline bool
is_tight(const LhFlowLink *link)
{
    return link->demand > link->capacity * (1 + 1e-12);
}

static inline void
touch_link(LhFlows *f, uint32_t id)
{
    if (f->links[id].epoch == f->epoch)
        return;
    f->links[id].epoch = f->epoch;
    lh_indices_push(&f->touched, id);
}

/* Touches the links that may limit the flow. */
static void
touch_links(LhFlows *f, const LhFlow *flow)
{
    if (flow->narrowest != LH_OWN_LIMIT)
        touch_link(f, flow->narrowest);
    for (uint32_t hop = 0; hop < flow->links_count; hop++)
        if (is_tight(&f->links[flow->hops[hop].link]))
            touch_link(f, flow->hops[hop].link);
}

static void
set_add(LhFlows *f, uint32_t index)
{
    LhFlow *flow = lh_flow(f, index);

    if (in_set(f, flow))
        return;
    flow->epoch = f->epoch;
    flow->next_rate = flow->rate;
    flow->next_bottleneck = flow->bottleneck;
    f->pending.unsettled = true;
    lh_indices_push(&f->set, index);
    touch_links(f, flow);
}

static void
grow_entries(LhFlowLink *link)
{
    bool in_place = link->entries == link->in_place;
    uint32_t *entries = in_place ? NULL : link->entries;

    link->entries_capacity *= 2;
    entries = g_renew(uint32_t, entries, link->entries_capacity);
    if (in_place)
        memcpy(entries, link->in_place, sizeof(link->in_place));
    link->entries = entries;
}

bool
lh_max_min_attach(LhFlows *f, uint32_t index)
{
    LhFlow *flow = lh_flow(f, index);
    bool tight = false;

    for (uint32_t hop = 0; hop < flow->links_count; hop++) {
        LhFlowLink *link = &f->links[flow->hops[hop].link];

        if (link->entries_count == link->entries_capacity)
            grow_entries(link);
        flow->hops[hop].position = link->entries_count;
        link->entries[link->entries_count++] = index << LH_HOP_BITS | hop;
        link->demand += flow->narrowest_rate;
        tight |= is_tight(link);
    }
    return tight;
}

/* Adds the flows of @id that are faster than an equal share. */
static void
add_above_share(LhFlows *f, uint32_t id)
{
    const LhFlowLink *link = &f->links[id];
    LhLinkOutside *outside = &f->outside[id];

    if (outside->claimed == f->epoch && outside->fastest * link->entries_count <= link->capacity)
        return;
    *outside = (LhLinkOutside){ .claimed = f->epoch, .held = outside->held };
    for (uint32_t i = 0; i < link->entries_count; i++) {
        const uint32_t index = link->entries[i] >> LH_HOP_BITS;
        const LhFlow *flow = lh_flow(f, index);

        if (in_set(f, flow))
            continue;
        if (flow->rate * link->entries_count > link->capacity)
            set_add(f, index);
        else
            outside->fastest = MAX(outside->fastest, flow->rate);
    }
}

void
lh_max_min_claim(LhFlows *f, uint32_t index)
{
    const LhFlow *flow = lh_flow(f, index);

    for (uint32_t hop = 0; hop < flow->links_count; hop++)
        if (is_tight(&f->links[flow->hops[hop].link]))
            add_above_share(f, flow->hops[hop].link);
    set_add(f, index);
}

void
lh_max_min_joins_outside(LhFlows *f, const LhFlow *flow)
{
    for (uint32_t hop = 0; hop < flow->links_count; hop++) {
        LhLinkOutside *outside = &f->outside[flow->hops[hop].link];

        outside->fastest = MAX(outside->fastest, flow->rate);
    }
}

/* Adds the flows whose bottleneck is @id. */
static void
add_held(LhFlows *f, uint32_t id)
{
    const LhFlowLink *link = &f->links[id];

    if (f->outside[id].held == f->epoch)
        return;
    f->outside[id].held = f->epoch;
    for (uint32_t i = 0; i < link->entries_count; i++) {
        const uint32_t index = link->entries[i] >> LH_HOP_BITS;

        if (lh_flow(f, index)->bottleneck == id)
            set_add(f, index);
    }
}

void
lh_max_min_detach(LhFlows *f, uint32_t index)
{
    LhFlow *flow = lh_flow(f, index);

    for (uint32_t hop = 0; hop < flow->links_count; hop++) {
        uint32_t id = flow->hops[hop].link;
        LhFlowLink *link = &f->links[id];
        uint32_t last = link->entries[--link->entries_count];
        uint32_t position = flow->hops[hop].position;
        bool tight = is_tight(link);

        if (link->entries_count == 0) {
            link->demand = 0;
            continue;
        }
        link->entries[position] = last;
        lh_flow(f, last >> LH_HOP_BITS)->hops[last & ((1 << LH_HOP_BITS) - 1)].position = position;
        link->demand -= flow->narrowest_rate;
        if (tight)
            add_held(f, id);
    }
    if (lh_flow_last_link(flow) >= f->pairs_first &&
        f->links[lh_flow_last_link(flow)].entries_count == 0)
        lh_indices_push(&f->pairs_free, lh_flow_last_link(flow));
    flow->links_count = 0;
}

static bool
share_before(LhMaxMinShare a, LhMaxMinShare b)
{
    return a.share < b.share || (a.share == b.share && a.link < b.link);
}

static void
shares_push(LhFlows *f, LhMaxMinShare s)
{
    uint32_t i = f->shares_count++;

    if (f->shares_count > f->shares_capacity) {
        f->shares_capacity = MAX(64, f->shares_capacity * 2);
        f->shares = g_renew(LhMaxMinShare, f->shares, f->shares_capacity);
    }
    for (; i > 0 && share_before(s, f->shares[(i - 1) / 2]); i = (i - 1) / 2)
        f->shares[i] = f->shares[(i - 1) / 2];
    f->shares[i] = s;
}

static LhMaxMinShare
shares_pop(LhFlows *f)
{
    LhMaxMinShare least = f->shares[0], last = f->shares[--f->shares_count];
    uint32_t i = 0;

    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= f->shares_count)
            break;
        if (child + 1 < f->shares_count && share_before(f->shares[child + 1], f->shares[child]))
            child++;
        if (!share_before(f->shares[child], last))
            break;
        f->shares[i] = f->shares[child];
        i = child;
    }
    f->shares[i] = last;
    return least;
}

/* Sets what every touched link can give to the set, with flows outside it keeping their rates. */
static void
offer(LhFlows *f)
{
    for (uint32_t t = 0; t < f->touched.count; t++) {
        LhFlowLink *link = &f->links[f->touched.items[t]];

        link->residual = link->capacity;
        link->open = 0;
        for (uint32_t i = 0; i < link->entries_count; i++) {
            const LhFlow *flow = lh_flow(f, link->entries[i] >> LH_HOP_BITS);

            if (in_set(f, flow))
                link->open++;
            else
                link->residual -= flow->rate;
        }
        link->residual = MAX(link->residual, 0);
        if (link->open > 0) {
            const double share = link->residual / link->open;

            shares_push(f, (LhMaxMinShare){ share, f->touched.items[t], link->open });
        }
    }
    for (uint32_t s = 0; s < f->set.count; s++) {
        LhFlow *flow = lh_flow(f, f->set.items[s]);

        flow->next_rate = -1;
        if (flow->narrowest == LH_OWN_LIMIT)
            shares_push(f, (LhMaxMinShare){ flow->own_rate, f->set.items[s] | LH_OF_FLOW, 1 });
    }
}

/* Fixes a flow of the set at @share, limited by @id, and subtracts it from its links. */
static void
fix_flow(LhFlows *f, LhFlow *flow, uint32_t id, double share)
{
    flow->next_rate = share;
    flow->next_bottleneck = id;
    for (uint32_t hop = 0; hop < flow->links_count; hop++) {
        LhFlowLink *link = &f->links[flow->hops[hop].link];

        if (link->epoch != f->epoch)
            continue;
        link->residual = MAX(link->residual - share, 0);
        link->open--;
    }
}

/* Fixes every unfixed flow of the set on @id at @share. */
static void
fix_link(LhFlows *f, uint32_t id, double share)
{
    const LhFlowLink *link = &f->links[id];

    for (uint32_t i = 0; i < link->entries_count; i++) {
        LhFlow *flow = lh_flow(f, link->entries[i] >> LH_HOP_BITS);

        if (in_set(f, flow) && flow->next_rate < 0)
            fix_flow(f, flow, id, share);
    }
}

static void
fix_own(LhFlows *f, uint32_t index, double limit)
{
    LhFlow *flow = lh_flow(f, index);

    if (flow->links_count > 0 && flow->next_rate < 0)
        fix_flow(f, flow, LH_OWN_LIMIT, limit);
}

/* Progressive filling: the link with the smallest share is full first. Shares only grow, so a stale
 * one is put back. */
static void
fill(LhFlows *f)
{
    offer(f);
    while (f->shares_count > 0) {
        LhMaxMinShare s = shares_pop(f);
        const LhFlowLink *link;

        if ((s.link & LH_OF_FLOW) != 0) {
            fix_own(f, s.link ^ LH_OF_FLOW, s.share);
            continue;
        }
        link = &f->links[s.link];
        if (link->open == 0)
            continue;
        if (link->open != s.open)
            shares_push(f, (LhMaxMinShare){ link->residual / link->open, s.link, link->open });
        else
            fix_link(f, s.link, s.share);
    }
}

/* Adds flows outside the set that are faster than @rate on @link and so hold back a flow of the
 * set. */
static void
add_faster(LhFlows *f, const LhFlowLink *link, double rate)
{
    for (uint32_t i = 0; i < link->entries_count; i++) {
        uint32_t index = link->entries[i] >> LH_HOP_BITS;

        if (lh_flow(f, index)->rate > rate * (1 + RELATIVE_SLACK))
            set_add(f, index);
    }
}

/* Checks that every flow limited by this link still is: the link is full, and no flow on it is
 * faster. */
static void
check_link(LhFlows *f, uint32_t id)
{
    const LhFlowLink *link = &f->links[id];
    double load = 0, fastest = 0;
    bool full;

    for (uint32_t i = 0; i < link->entries_count; i++) {
        const LhFlow *flow = lh_flow(f, link->entries[i] >> LH_HOP_BITS);
        double rate = in_set(f, flow) ? flow->next_rate : flow->rate;

        load += rate;
        fastest = MAX(fastest, rate);
    }
    full = load >= link->capacity * (1 - RELATIVE_SLACK);
    for (uint32_t i = 0; i < link->entries_count; i++) {
        uint32_t index = link->entries[i] >> LH_HOP_BITS;
        const LhFlow *flow = lh_flow(f, index);
        bool member = in_set(f, flow);
        double rate = member ? flow->next_rate : flow->rate;

        if ((member ? flow->next_bottleneck : flow->bottleneck) != id || rate < 0)
            continue;
        if (full && rate >= fastest * (1 - RELATIVE_SLACK))
            continue;
        if (member)
            add_faster(f, link, rate);
        else
            set_add(f, index);
    }
}

#ifdef LH_CHECKED
/* Asserts that no link carries more than its capacity, with the new rates of the set. */
static void
check_loads(const LhFlows *f)
{
    for (uint32_t t = 0; t < f->touched.count; t++) {
        const LhFlowLink *link = &f->links[f->touched.items[t]];
        double load = 0;

        for (uint32_t i = 0; i < link->entries_count; i++) {
            const LhFlow *flow = lh_flow(f, link->entries[i] >> LH_HOP_BITS);

            load += in_set(f, flow) ? flow->next_rate : flow->rate;
        }
        g_assert(load <= link->capacity * (1 + RELATIVE_SLACK));
    }
}
#endif

void
lh_max_min_solve(LhFlows *f)
{
    uint32_t solved = 0;

    while (solved < f->set.count) {
        const uint32_t touched = f->touched.count;

        solved = f->set.count;
        fill(f);
        for (uint32_t t = 0; t < touched; t++)
            check_link(f, f->touched.items[t]);
    }
#ifdef LH_CHECKED
    check_loads(f);
#endif
}

void
lh_max_min_end(LhFlows *f)
{
    f->set.count = 0;
    f->touched.count = 0;
    f->epoch++;
}
