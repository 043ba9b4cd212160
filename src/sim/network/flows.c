/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as flows: a flow is a fluid that crosses all links of its route at once, at its max-min
 * fair rate (max_min.c). Its latency is added after its last byte has been sent.
 *
 * The limit of all messages of a pair of GPUs together is a link like any other, which exists while
 * there are such messages. The limit of a single message is a link of its own.
 *
 * Not modelled: packets, queues and protocols.
 */
#include "sim/network/flows_private.h"

#include "sim/network/max_min.h"

#include <math.h>
#include <string.h>

#define S_PER_PS 1e-12
#define FLOWS_MIN 64
#define HOPS_MIN 5

static void
reserve_links(LhFlows *f, uint32_t capacity)
{
    LhFlowLink *links = g_aligned_alloc0(MAX(1, capacity), sizeof(LhFlowLink), sizeof(LhFlowLink));

    for (uint32_t i = 0; i < f->links_count; i++) {
        links[i] = f->links[i];
        if (f->links[i].entries == f->links[i].in_place)
            links[i].entries = links[i].in_place;
    }
    g_aligned_free(f->links);
    f->links = links;
    f->outside = g_renew(LhLinkOutside, f->outside, MAX(1, capacity));
    f->links_capacity = capacity;
}

static uint32_t
add_link(LhFlows *f)
{
    LhFlowLink *link = &f->links[f->links_count];

    link->entries = link->in_place;
    link->entries_capacity = LH_SETTINGS_INLINE;
    f->outside[f->links_count] = (LhLinkOutside){ 0 };
    return f->links_count++;
}

/* Makes room for @capacity flows of routes of @hops links. */
static void
reserve_flows(LhFlows *f, uint32_t capacity, uint32_t hops)
{
    const gsize used = offsetof(LhFlow, hops) + hops * sizeof(LhFlowHop);
    const uint32_t bytes =
        (uint32_t)((used + LH_FLOW_LINE_BYTES - 1) / LH_FLOW_LINE_BYTES) * LH_FLOW_LINE_BYTES;
    char *flows = g_aligned_alloc0(capacity, bytes, LH_FLOW_LINE_BYTES);

    for (uint32_t i = 0; i < f->flows_count; i++)
        memcpy(flows + (gsize)i * bytes, lh_flow(f, i), f->flow_bytes);
    g_aligned_free(f->flows);
    f->flows = flows;
    f->flows_capacity = capacity;
    f->flow_bytes = bytes;
    f->flow_hops = (bytes - (uint32_t)offsetof(LhFlow, hops)) / sizeof(LhFlowHop);
}

LhFlows *
lh_flows_new(const LhNetwork *network, LhNetworkModel model, LhHeap *heap, uint32_t heap_first)
{
    LhFlows *f = g_new0(LhFlows, 1);

    f->model = model;
    f->heap = heap;
    f->heap_first = heap_first;
    f->epoch = 1;
    lh_latency_queues_init(&f->delays);
    f->pending.next_arrival_ps = f->delays.next_ps;
    f->pairs_first = network->links_count;
    reserve_flows(f, FLOWS_MIN, HOPS_MIN);
    reserve_links(f, network->links_count);
    for (uint32_t i = 0; i < network->links_count; i++)
        f->links[add_link(f)].capacity = lh_network_link(network, i).bandwidth_bytes_per_s;
    return f;
}

void
lh_flows_free(LhFlows *f)
{
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->links_count; i++)
        if (f->links[i].entries != f->links[i].in_place)
            g_free(f->links[i].entries);
    lh_latency_queues_clear(&f->delays);
    g_aligned_free(f->links);
    g_free(f->outside);
    g_aligned_free(f->flows);
    g_free(f->set.items);
    g_free(f->touched.items);
    g_free(f->pairs_free.items);
    g_free(f->free.items);
    g_free(f->retired.items);
    g_free(f->shares);
    g_free(f->carries);
    g_free(f);
}

/* Destination id of a pair's link. A pair's messages and its hops of collectives have separate
 * connections, and so separate limits. The product does not overflow: there are fewer ranks than
 * links, and at most G_MAXINT32 links. */
static uint32_t
pair_destination(const LhRoute *route)
{
    return 2 * route->destination + route->of_collective;
}

static bool
is_of_pair(const LhFlows *f, uint32_t id, const LhRoute *route)
{
    const LhFlowLink *link = &f->links[id];

    return id >= f->pairs_first && link->pair.source == route->source &&
           link->pair.destination == pair_destination(route);
}

static uint32_t
take_pair_link(LhFlows *f, const LhRoute *route)
{
    uint32_t id;

    if (f->pairs_free.count == 0 && f->links_count == f->links_capacity)
        reserve_links(f, f->pairs_first + MAX(64, 2 * (f->links_count - f->pairs_first)));
    id = f->pairs_free.count > 0 ? f->pairs_free.items[--f->pairs_free.count] : add_link(f);
    f->links[id].capacity = route->flow_bandwidth_bytes_per_s;
    f->links[id].pair.source = route->source;
    f->links[id].pair.destination = pair_destination(route);
    return id;
}

/*
 * Returns the link of the pair at the ends of @route. All messages of a pair cross the same links,
 * so if one is in flight, the list of the first link has it.
 */
static uint32_t
pair_link(LhFlows *f, const LhRoute *route)
{
    const LhFlowLink *first = &f->links[route->links[0]];

    for (uint32_t i = 0; i < first->entries_count; i++) {
        const LhFlow *other = lh_flow(f, first->entries[i] >> LH_HOP_BITS);

        if (is_of_pair(f, lh_flow_last_link(other), route))
            return lh_flow_last_link(other);
    }
    return take_pair_link(f, route);
}

static uint32_t
take_index(LhFlows *f)
{
    if (f->free.count > 0)
        return f->free.items[--f->free.count];
    if (f->flows_count == f->flows_capacity)
        reserve_flows(f, f->flows_capacity * 2, f->flow_hops);
    lh_heap_reserve(f->heap, f->heap_first + f->flows_count + 1);
    lh_flow(f, f->flows_count)->epoch = 0;
    return f->flows_count++;
}

static LhTime
transfer_ps(double bytes, double rate)
{
    return lh_time_from_ps(bytes / rate * (double)LH_PS_PER_S);
}

/* The mean rate of a flow without sharing that takes @takes_ps. */
static double
mean_rate(const LhFlow *flow, LhTime takes_ps)
{
    return flow->remaining_bytes / ((double)takes_ps * S_PER_PS);
}

/* The end of a message without sharing, known when it starts at @begins_ps, which may be later than
 * now. */
static LhTime
unshared_finish(LhFlows *f, LhTime now, const LhRoute *route, uint64_t bytes, LhTime *begins_ps)
{
    double narrowest = lh_route_limit(route);
    LhTime start = now;

    for (uint32_t i = 0; i < route->links_count; i++) {
        const LhFlowLink *link = &f->links[route->links[i]];

        narrowest = MIN(narrowest, link->capacity);
        if (f->model == LH_NETWORK_FIFO)
            start = MAX(start, link->free_ps);
    }
    /* Later than any run: messages queued behind it need no more exact time. */
    *begins_ps = MIN(start, 2 * LH_TIME_LONGEST);
    start = *begins_ps + transfer_ps((double)bytes, narrowest);
    for (uint32_t i = 0; i < route->links_count; i++)
        f->links[route->links[i]].free_ps = start;
    return start;
}

static void
narrow(LhFlow *flow, uint32_t id, double rate)
{
    if (rate >= flow->narrowest_rate)
        return;
    flow->narrowest = id;
    flow->narrowest_rate = rate;
}

static inline void
add_hop(const LhFlows *f, LhFlow *flow, uint32_t link)
{
    flow->hops[flow->links_count++].link = link;
    narrow(flow, link, f->links[link].capacity);
}

/* Sets the links of a new flow, including that of its pair, and the narrowest of these and its own
 * limit. */
static void
take_links(LhFlows *f, LhFlow *flow, const LhRoute *route)
{
    flow->narrowest_rate = INFINITY;
    for (uint32_t i = 0; i < route->links_count; i++)
        add_hop(f, flow, route->links[i]);
    if (route->flow_bandwidth_bytes_per_s > 0) {
        g_assert(flow->links_count < LH_ROUTE_MAX); /* routes leave room for it */
        add_hop(f, flow, pair_link(f, route));
    }
    flow->own_rate = route->own_bytes_per_s > 0 ? route->own_bytes_per_s : INFINITY;
    flow->own_tiers = route->own_tiers;
    narrow(flow, LH_OWN_LIMIT, flow->own_rate);
}

uint32_t
lh_flows_start(LhFlows *f, LhTime now, const LhRoute *route, uint64_t bytes)
{
    uint32_t index;
    LhFlow *flow;

    if (G_UNLIKELY(route->links_count + 1 > f->flow_hops)) /* and the limit of its pair */
        reserve_flows(f, f->flows_capacity, MIN(route->links_count + 1, LH_ROUTE_MAX));
    index = take_index(f);
    flow = lh_flow(f, index);
    flow->rate = 0;
    flow->bottleneck = LH_NO_LINK;
    flow->latency_ps = route->latency_ps;
    flow->remaining_bytes = (double)bytes;
    flow->updated_ps = now;
    flow->links_count = 0;
    lh_flows_count(f, route, bytes);
    if (f->load != NULL)
        lh_link_utilization_start(f->load, index, route);
    if (f->model != LH_NETWORK_FAIR || bytes == 0) {
        flow->finish_ps =
            bytes == 0 ? now : unshared_finish(f, now, route, bytes, &flow->updated_ps);
        if (f->load != NULL && f->model == LH_NETWORK_ALPHA_BETA && flow->finish_ps > now)
            lh_link_utilization_rate(f->load, index, mean_rate(flow, flow->finish_ps - now));
        lh_heap_set(f->heap, f->heap_first + index, flow->finish_ps);
        return index;
    }
    flow->finish_ps = LH_TIME_NEVER;
    take_links(f, flow, route);
    if (lh_max_min_attach(f, index)) {
        lh_max_min_claim(f, index);
    } else {
        flow->rate = flow->narrowest_rate;
        if (f->load != NULL)
            lh_link_utilization_rate(f->load, index, flow->rate);
        flow->bottleneck = flow->narrowest;
        if (f->set.count > 0)
            lh_max_min_joins_outside(f, flow);
        flow->finish_ps = now + transfer_ps((double)bytes, flow->rate);
        lh_heap_set(f->heap, f->heap_first + index, flow->finish_ps);
    }
    return index;
}

void
lh_flows_release(LhFlows *f, uint32_t index)
{
    f->pending.unsettled = true;
    lh_indices_push(&f->retired, index);
}

static void
set_rate(LhFlows *f, uint32_t index, LhTime now)
{
    LhFlow *flow = lh_flow(f, index);
    double before = flow->rate;
    LhTime key = flow->finish_ps;

    flow->bottleneck = flow->next_bottleneck;
    if (fabs(flow->next_rate - before) <= 1e-12 * before)
        return;
    flow->remaining_bytes -= before * ((double)(now - flow->updated_ps) * S_PER_PS);
    flow->remaining_bytes = MAX(flow->remaining_bytes, 0);
    flow->updated_ps = now;
    flow->rate = flow->next_rate;
    if (f->load != NULL)
        lh_link_utilization_rate(f->load, index, flow->rate);
    flow->finish_ps = now + transfer_ps(flow->remaining_bytes, flow->rate);
    /* A flow that slows down keeps its early key: its event finds that it is not due and is
     * re-keyed. */
    if (flow->finish_ps < key || before == 0)
        lh_heap_set(f->heap, f->heap_first + index, flow->finish_ps);
}

void
lh_flows_load(LhFlows *f, LhLinkUtilization *load)
{
    f->load = load;
    f->pending.unsettled |= load != NULL;
}

void
lh_flows_watch(LhFlows *f, const LhFlowsWatch *watch)
{
    f->watch = *watch;
}

static void
tell_changes(const LhFlows *f, LhTime now)
{
    f->watch.settling(f->watch.data);
    for (uint32_t i = 0; i < f->set.count; i++)
        if (lh_flow(f, f->set.items[i])->links_count > 0)
            f->watch.changed(f->watch.data, f->set.items[i], now);
}

void
lh_flows_settle(LhFlows *f, LhTime now)
{
    if (f->set.count > 0) {
        lh_max_min_solve(f);
        for (uint32_t i = 0; i < f->set.count; i++) {
            if (lh_flow(f, f->set.items[i])->links_count > 0)
                set_rate(f, f->set.items[i], now);
        }
        if (f->watch.changed != NULL)
            tell_changes(f, now);
        lh_max_min_end(f);
    }
    if (f->load != NULL)
        lh_link_utilization_tell(f->load, now);
    while (f->retired.count > 0)
        lh_indices_push(&f->free, f->retired.items[--f->retired.count]);
    f->pending.unsettled = f->load != NULL;
}

/* Ends the utilisation of a flow whose last byte has been sent. */
static void
unload(LhFlows *f, uint32_t index, LhTime now)
{
    const LhFlow *flow = lh_flow(f, index);

    if (f->model == LH_NETWORK_FIFO)
        lh_link_utilization_end_alone(f->load, index, flow->updated_ps, now,
                                      mean_rate(flow, now - flow->updated_ps));
    else
        lh_link_utilization_end(f->load, index);
}

bool
lh_flows_event(LhFlows *f, uint32_t index, LhTime now)
{
    const LhFlow *flow = lh_flow(f, index);

    if (flow->finish_ps > now) {
        lh_heap_set(f->heap, f->heap_first + index, flow->finish_ps);
        return false;
    }
    if (f->load != NULL)
        unload(f, index, now);
    if (flow->links_count > 0)
        lh_max_min_detach(f, index);
    lh_latency_queues_add(&f->delays, now, flow->latency_ps, index);
    f->pending.next_arrival_ps = f->delays.next_ps;
    return true;
}

bool
lh_flows_arrive(LhFlows *f, LhTime now, uint32_t *index)
{
    const bool arrives = lh_latency_queues_take(&f->delays, now, index);

    f->pending.next_arrival_ps = f->delays.next_ps;
    return arrives;
}

/* Counts overflows: the bytes of a link shared by many ranks may not fit 64 bits. */
static void
carry(LhFlows *f, uint32_t link, uint32_t times)
{
    if (f->carries == NULL)
        f->carries = g_new0(uint32_t, f->pairs_first);
    f->carries[link] += times;
}

void
lh_flows_count(LhFlows *f, const LhRoute *route, uint64_t bytes)
{
    for (uint32_t i = 0; i < route->links_count; i++)
        if (G_UNLIKELY(__builtin_add_overflow(f->links[route->links[i]].bytes, bytes,
                                              &f->links[route->links[i]].bytes)))
            carry(f, route->links[i], 1);
}

void
lh_flows_count_link(LhFlows *f, uint32_t id, LhWide bytes)
{
    const LhWide sum = bytes + f->links[id].bytes;

    if (G_UNLIKELY(sum >> 64 > 0))
        carry(f, id, (uint32_t)(sum >> 64));
    f->links[id].bytes = (uint64_t)sum;
}

LhWide
lh_flows_link_bytes(const LhFlows *f, uint32_t id)
{
    const uint32_t carries = f->carries == NULL ? 0 : f->carries[id];

    return ((LhWide)carries << 64) + f->links[id].bytes;
}

double
lh_flows_rate(const LhFlows *f, uint32_t index)
{
    return lh_flow(f, index)->links_count > 0 ? lh_flow(f, index)->rate : 0;
}
