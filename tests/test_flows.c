/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on links. Max-min rates are compared with a reference that solves the whole network from
 * scratch after every change; bytes and times are accumulated from those rates; models without
 * sharing are compared with closed forms.
 */
#include "sim/network/flows.h"

#include "base/rng.h"
#include "run_tests.h"
#include "share.h"

#include <math.h>

#define LIVE_MAX 48
#define LINKS_MAX 1024
#define PAIRS_MAX 12
#define FASTEST 100e9 /* bytes/s of a link without faults */

/* The test's own record of a message. */
typedef struct {
    bool live, sent;
    LhRoute route;
    uint64_t bytes;
    double moved_bytes; /* sum of rate x time */
    LhTime sent_ps, arrived_ps;
} Message;

typedef struct {
    LhTopology topology;
    GArray *faults;
    LhNetwork network;
    LhHeap heap;
    LhFlows *flows;
    LhTime now;
    Message messages[2 * LIVE_MAX + 4096]; /* by flow index */
    uint32_t messages_count, live;
    LhRoute pairs[PAIRS_MAX]; /* of random_limited_pair */
    uint64_t link_bytes[LINKS_MAX];
    uint32_t compared;
} Bench;

/* ---- the network: nodes with one NIC, that is 2 links each, of any capacity ---- */

static Bench *
bench_new(const LhTopology *topology, uint32_t nodes, GArray *faults, LhNetworkModel model)
{
    Bench *b = g_new0(Bench, 1);
    g_autoptr(GError) error = NULL;
    bool fits;

    b->topology = *topology;
    b->faults = faults;
    fits = lh_network_init(&b->network, &b->topology, nodes,
                           nodes * (uint32_t)topology->gpus_per_node, faults, &error);
    ck_assert_msg(fits, "%s", error != NULL ? error->message : "");
    ck_assert_uint_le(b->network.links_count, LINKS_MAX);
    b->flows = lh_flows_new(&b->network, model, &b->heap, 0);
    return b;
}

/* @factors: of each node's links, [nodes]; NULL: all 1. */
static Bench *
bench_plain(uint32_t nodes, const double *factors, LhNetworkModel model)
{
    const LhTopology topology = { .name = (char *)"test",
                                  .gpus_per_node = 1,
                                  .nics_per_node = 1,
                                  .nic = { .bandwidth = FASTEST } };
    GArray *faults = g_array_new(FALSE, FALSE, sizeof(LhLinkFault));

    for (uint32_t i = 0; factors != NULL && i < nodes; i++) {
        const LhLinkFault fault = { LH_TIER_NIC, i, factors[i] };

        g_array_append_val(faults, fault);
    }
    return bench_new(&topology, nodes, faults, model);
}

static void
bench_free(Bench *b)
{
    if (b->faults != NULL)
        g_array_unref(b->faults);
    lh_flows_free(b->flows);
    lh_heap_clear(&b->heap);
    g_free(b);
}

static double
capacity(const Bench *b, uint32_t link)
{
    return lh_network_link(&b->network, link).bandwidth_bytes_per_s;
}

/* ---- the reference: progressive filling of the whole network ---- */

static bool
crosses(const Message *m, uint32_t link)
{
    for (uint32_t i = 0; i < m->route.links_count; i++)
        if (m->route.links[i] == link)
            return true;
    return false;
}

static bool
is_flowing(const Message *m)
{
    return m->live && !m->sent && m->bytes > 0;
}

static bool
is_of_pair(const Message *m, const LhRoute *pair)
{
    return m->route.source == pair->source && m->route.destination == pair->destination;
}

/* The equal share of a pair's remaining limit among its messages without a rate yet, for message
 * @i. */
static double
pair_share(const Bench *b, const double *rates, uint32_t i)
{
    const LhRoute *pair = &b->messages[i].route;
    double left = pair->flow_bandwidth_bytes_per_s;
    uint32_t open = 0;

    if (left == 0)
        return INFINITY;
    for (uint32_t k = 0; k < b->messages_count; k++) {
        if (!is_flowing(&b->messages[k]) || !is_of_pair(&b->messages[k], pair))
            continue;
        if (rates[k] < 0)
            open++;
        else
            left -= rates[k];
    }
    return fmax(left, 0) / open;
}

/* The tightest constraint in progressive filling. */
typedef struct {
    double share;
    uint32_t link;
    const LhRoute *pair; /* the pair whose limit it is, or NULL */
    const Message *own;  /* the message whose own limit it is, or NULL */
} Tightest;

/* Replaces @t by the smallest limit of a single message if that is tighter. */
static void
find_own(const Bench *b, const double *rates, Tightest *t)
{
    for (uint32_t i = 0; i < b->messages_count; i++) {
        const Message *m = &b->messages[i];

        if (!is_flowing(m) || rates[i] >= 0 || m->route.own_bytes_per_s <= 0 ||
            m->route.own_bytes_per_s >= t->share)
            continue;
        t->share = m->route.own_bytes_per_s;
        t->own = m;
    }
}

/* The smallest of the links' equal shares, the pairs' shares and the messages' own limits. */
static Tightest
tightest(const Bench *b, const double *residual, const double *rates)
{
    Tightest t = { INFINITY, UINT32_MAX, NULL, NULL };

    for (uint32_t link = 0; link < b->network.links_count; link++) {
        uint32_t open = 0;

        for (uint32_t i = 0; i < b->messages_count; i++)
            open += is_flowing(&b->messages[i]) && rates[i] < 0 && crosses(&b->messages[i], link);
        if (open > 0 && residual[link] / open < t.share) {
            t.share = residual[link] / open;
            t.link = link;
        }
    }
    for (uint32_t i = 0; i < b->messages_count; i++) {
        const Message *m = &b->messages[i];

        if (!is_flowing(m) || rates[i] >= 0 || pair_share(b, rates, i) >= t.share)
            continue;
        t.share = pair_share(b, rates, i);
        t.pair = &m->route;
    }
    find_own(b, rates, &t);
    return t;
}

static bool
is_limited(const Message *m, const Tightest *t)
{
    if (t->own != NULL)
        return m == t->own;
    return t->pair != NULL ? is_of_pair(m, t->pair) : crosses(m, t->link);
}

static void
reference_rates(const Bench *b, double *rates)
{
    double residual[LINKS_MAX] = { 0 };
    Tightest t;

    for (uint32_t i = 0; i < b->network.links_count; i++)
        residual[i] = capacity(b, i);
    for (uint32_t i = 0; i <= b->messages_count; i++)
        rates[i] = -1;
    while ((t = tightest(b, residual, rates)).link != UINT32_MAX)
        for (uint32_t i = 0; i < b->messages_count; i++) {
            const Message *m = &b->messages[i];

            if (!is_flowing(m) || rates[i] >= 0 || !is_limited(m, &t))
                continue;
            rates[i] = t.share;
            for (uint32_t hop = 0; hop < m->route.links_count; hop++)
                residual[m->route.links[hop]] = fmax(residual[m->route.links[hop]] - t.share, 0);
        }
}

static void
compare_rates(Bench *b)
{
    g_autofree double *rates = g_new0(double, b->messages_count + 1);

    reference_rates(b, rates);
    for (uint32_t i = 0; i < b->messages_count; i++) {
        const double rate = b->messages[i].live ? lh_flows_rate(b->flows, i) : 0;

        if (!is_flowing(&b->messages[i])) {
            ck_assert(rate == 0);
            continue;
        }
        ck_assert_msg(fabs(rate - rates[i]) <= 1e-8 * rates[i],
                      "flow %u of %u runs at %.15g, expected %.15g bytes/s", i, b->live, rate,
                      rates[i]);
        b->compared++;
    }
}

/* ---- the clock ---- */

static uint32_t
start(Bench *b, const LhRoute *route, uint64_t bytes)
{
    const uint32_t index = lh_flows_start(b->flows, b->now, route, bytes);

    ck_assert_uint_lt(index, G_N_ELEMENTS(b->messages));
    b->messages_count = MAX(b->messages_count, index + 1);
    ck_assert(!b->messages[index].live);
    b->messages[index] = (Message){ .live = true, .route = *route, .bytes = bytes };
    b->live++;
    for (uint32_t i = 0; i < route->links_count; i++)
        b->link_bytes[route->links[i]] += bytes;
    return index;
}

static void
move_to(Bench *b, LhTime time)
{
    ck_assert_int_ge(time, b->now);
    for (uint32_t i = 0; i < b->messages_count; i++)
        if (is_flowing(&b->messages[i]))
            b->messages[i].moved_bytes +=
                lh_flows_rate(b->flows, i) * ((double)(time - b->now) / (double)LH_PS_PER_S);
    b->now = time;
}

/* Every change of rate rounds the end to a picosecond: an error of a fraction of a byte each. */
static void
check_sent(Bench *b, uint32_t index)
{
    Message *m = &b->messages[index];

    if (m->sent || (m->bytes > 0 && lh_flows_rate(b->flows, index) > 0))
        return;
    m->sent = true;
    m->sent_ps = b->now;
    ck_assert_msg(fabs(m->moved_bytes - (double)m->bytes) <= 4 + 1e-9 * (double)m->bytes,
                  "flow %u moved %.3f of %" G_GUINT64_FORMAT " bytes", index, m->moved_bytes,
                  m->bytes);
}

static LhTime
next_time(Bench *b)
{
    const LhTime sent = lh_heap_time(&b->heap);

    return MIN(sent, lh_flows_next_arrival(b->flows));
}

/* Executes all events of the next instant; the caller settles the rates. */
static void
play_instant(Bench *b)
{
    uint32_t index;

    move_to(b, next_time(b));
    while (lh_heap_time(&b->heap) == b->now)
        lh_flows_event(b->flows, lh_heap_pop(&b->heap), b->now);
    while (lh_flows_arrive(b->flows, b->now, &index)) {
        Message *m = &b->messages[index];

        check_sent(b, index);
        ck_assert(m->live);
        ck_assert_int_eq(b->now, m->sent_ps + m->route.latency_ps);
        m->arrived_ps = b->now;
        m->live = false;
        b->live--;
        lh_flows_release(b->flows, index);
    }
    for (uint32_t i = 0; i < b->messages_count; i++)
        if (b->messages[i].live)
            check_sent(b, i);
}

static void
settle(Bench *b)
{
    lh_flows_settle(b->flows, b->now);
}

static void
drain(Bench *b)
{
    settle(b);
    while (next_time(b) != LH_TIME_NEVER) {
        play_instant(b);
        settle(b);
    }
    ck_assert_uint_eq(b->live, 0);
    for (uint32_t i = 0; i < b->network.links_count; i++)
        ck_assert(lh_flows_link_bytes(b->flows, i) == b->link_bytes[i]);
}

/* ---- random traffic ---- */

static uint64_t
draw(uint64_t *state, uint64_t count)
{
    return lh_rng_bits(20250807, (*state)++, 1) % count;
}

/* Any set of links is a route: the sharing model does not know the network's structure. */
static LhRoute
random_links(const Bench *b, uint64_t *state)
{
    static const LhTime latencies[] = { 0, 5000, 2000000, 9800000 };
    LhRoute route = { .latency_ps = latencies[draw(state, G_N_ELEMENTS(latencies))] };
    const uint32_t hops = 1 + (uint32_t)draw(state, MIN(LH_ROUTE_MAX, b->network.links_count));

    while (route.links_count < hops) {
        const uint32_t link = (uint32_t)draw(state, b->network.links_count);
        bool taken = false;

        for (uint32_t i = 0; i < route.links_count; i++)
            taken |= route.links[i] == link;
        if (!taken)
            route.links[route.links_count++] = link;
    }
    return route;
}

/* A few pairs on any links, each with or without a limit; pairs keep their limits throughout a
 * bench. */
static LhRoute
random_limited_pair(const Bench *b, uint64_t *state)
{
    return b->pairs[draw(state, PAIRS_MAX)];
}

static void
draw_pairs(Bench *b, uint64_t *state)
{
    for (uint32_t i = 0; i < PAIRS_MAX; i++) {
        LhRoute *pair = &b->pairs[i];

        *pair = random_links(b, state);
        pair->links_count = MIN(pair->links_count, LH_ROUTE_MAX - 1);
        pair->source = i / 3; /* pairs share sources or destinations, but not both */
        pair->destination = i % 3;
        if (draw(state, 4) > 0)
            pair->flow_bandwidth_bytes_per_s = FASTEST / (double)(1 + draw(state, 30));
    }
}

static LhRoute
random_pair(const Bench *b, uint64_t *state)
{
    const uint32_t source = (uint32_t)draw(state, b->network.ranks);
    const uint32_t other = (uint32_t)draw(state, b->network.ranks - 1);
    LhRoute route;

    lh_network_route(&b->network, source, other < source ? other : other + 1, &route);
    return route;
}

static uint64_t
random_bytes(uint64_t *state)
{
    static const uint64_t sizes[] = { 1, 4096, 1 << 20, 64 << 20, UINT64_C(1) << 30 };
    const uint64_t kind = draw(state, 12);

    if (kind == 0)
        return 0;
    if (kind < 6)
        return sizes[draw(state, G_N_ELEMENTS(sizes))]; /* few sizes, so that ends coincide */
    return 1 + draw(state, 100000000);
}

typedef LhRoute (*RandomRoute)(const Bench *b, uint64_t *state);

static void
random_starts(Bench *b, RandomRoute random_route, uint64_t *state)
{
    for (uint64_t count = 1 + draw(state, 5); count > 0 && b->live < LIVE_MAX; count--) {
        const LhRoute route = random_route(b, state);

        start(b, &route, random_bytes(state));
    }
}

/* A random limit of a message or a pair. */
static double
random_limit(uint64_t *state)
{
    return FASTEST / (double)(1 + draw(state, 40));
}

/* A pair's message, possibly with a limit of its own. */
static LhRoute
random_own_limit(const Bench *b, uint64_t *state)
{
    LhRoute route = random_limited_pair(b, state);

    if (draw(state, 4) > 0)
        route.own_bytes_per_s = random_limit(state);
    return route;
}

/* Random starts and ends, also at the same instant, with the rates compared after each. */
static void
play_randomly(Bench *b, RandomRoute random_route, uint64_t seed, uint32_t steps)
{
    uint64_t state = seed << 32;

    for (uint32_t step = 0; step < steps; step++) {
        const uint64_t what = draw(&state, 6);
        const LhTime next = next_time(b);

        if (next == LH_TIME_NEVER || what < 2)
            random_starts(b, random_route, &state);
        else if (what == 2 && next > b->now)
            move_to(b, b->now + (LhTime)draw(&state, (uint64_t)(next - b->now)));
        else
            play_instant(b);
        if (what == 5)
            random_starts(b, random_route, &state);
        settle(b);
        compare_rates(b);
    }
    drain(b);
}

/* Sanitized builds use fewer random networks by this factor. */
#define FEWER MIN(test_every(), 3)

START_TEST(flows_are_max_min_fair_on_any_links)
{
    uint32_t compared = 0;

    for (uint64_t seed = 1; seed <= 60 / FEWER; seed++) {
        uint64_t state = seed;
        const uint32_t nodes = 1 + (uint32_t)draw(&state, 14);
        double factors[16];
        Bench *b;

        for (uint32_t i = 0; i < nodes; i++)
            factors[i] = seed % 3 == 0   ? 1
                         : seed % 3 == 1 ? 1.0 / (double)(1 + draw(&state, 4))
                                         : (double)(1 + draw(&state, 100000)) / 100000;
        b = bench_plain(nodes, factors, LH_NETWORK_FAIR);
        play_randomly(b, random_links, seed, 250);
        compared += b->compared;
        bench_free(b);
    }
    ck_assert_uint_gt(compared, 50000 / FEWER);
}
END_TEST

START_TEST(flows_are_max_min_fair_with_limits)
{
    uint32_t compared = 0;

    for (uint64_t seed = 1; seed <= 40 / FEWER; seed++) {
        uint64_t state = seed;
        const uint32_t nodes = 1 + (uint32_t)draw(&state, 14);
        double factors[16];
        Bench *b;

        for (uint32_t i = 0; i < nodes; i++)
            factors[i] = seed % 2 == 0 ? 1 : (double)(1 + draw(&state, 1000)) / 1000;
        b = bench_plain(nodes, factors, LH_NETWORK_FAIR);
        draw_pairs(b, &state);
        play_randomly(b, seed % 4 < 2 ? random_limited_pair : random_own_limit, seed, 250);
        compared += b->compared;
        bench_free(b);
    }
    ck_assert_uint_gt(compared, 30000 / FEWER);
}
END_TEST

START_TEST(flows_are_max_min_fair_on_clusters)
{
    static const struct {
        const char *topology;
        uint32_t nodes;
    } clusters[] = { { "dgx-a100-80g", 3 },   { "azure-nc96-a100", 4 }, { "azure-nc96-a100", 2 },
                     { "fat-tree-a100", 12 }, { "bench-platform", 3 },  { "lasp-dgx", 2 },
                     { "hgx-h100", 3 } };

    for (uint32_t i = 0; i < G_N_ELEMENTS(clusters); i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            g_autoptr(GError) error = NULL;
            g_autoptr(LhTopology) topology = lh_topology_load(clusters[i].topology, &error);
            Bench *b;

            ck_assert_msg(topology != NULL, "%s", error != NULL ? error->message : "");
            b = bench_new(topology, clusters[i].nodes, NULL, LH_NETWORK_FAIR);
            play_randomly(b, random_pair, 1000 + 10 * i + seed, 60);
            bench_free(b);
        }
}
END_TEST

/* ---- closed forms ---- */

static LhRoute
route_over(LhTime latency_ps, uint32_t links_count, const uint32_t *links)
{
    LhRoute route = { .links_count = links_count, .latency_ps = latency_ps };

    for (uint32_t i = 0; i < links_count; i++)
        route.links[i] = links[i];
    return route;
}

/* bytes / rate, rounded to the picosecond, in integers. */
static LhTime
exact_ps(uint64_t bytes, uint64_t rate)
{
    __extension__ typedef unsigned __int128 Wide;

    return (LhTime)((2 * (Wide)bytes * LH_PS_PER_S + rate) / (2 * rate));
}

/* Capacities 10 and 4: the long flow gets 2, and the short one on the wide link the rest. */
START_TEST(flows_know_the_parking_lot)
{
    const double factors[] = { 0.1, 0.04 };
    const uint32_t wide[] = { 0 }, both[] = { 0, 2 }, narrow[] = { 2 };
    Bench *b = bench_plain(2, factors, LH_NETWORK_FAIR);
    const LhRoute a = route_over(0, 1, wide), l = route_over(0, 2, both),
                  c = route_over(0, 1, narrow);

    start(b, &a, 1000000);
    settle(b);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 0), 10e9, 1);
    start(b, &l, 1000000);
    settle(b);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 0), 6e9, 1);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 1), 4e9, 1);
    start(b, &c, 1000000);
    settle(b);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 0), 8e9, 1);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 1), 2e9, 1);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 2), 2e9, 1);
    /* 10^6 bytes at 8 GB/s; then the narrow link still limits the long flow to 2 GB/s. */
    play_instant(b);
    settle(b);
    ck_assert_int_eq(b->now, 125 * 1000000);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 1), 2e9, 1);
    drain(b);
    ck_assert_int_eq(b->now, 500 * 1000000);
    bench_free(b);
}
END_TEST

START_TEST(flows_alone_take_latency_and_bytes_over_bandwidth)
{
    static const uint64_t sizes[] = { 1, 3, 1000, 65536, 67108864, 8589934592 };
    const LhNetworkModel models[] = { LH_NETWORK_FAIR, LH_NETWORK_ALPHA_BETA, LH_NETWORK_FIFO };
    const double factors[] = { 1, 0.24 };
    const uint32_t links[] = { 0, 3 };

    for (uint32_t m = 0; m < G_N_ELEMENTS(models); m++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
            Bench *b = bench_plain(2, factors, models[m]);
            const LhRoute route = route_over(9800000, 2, links);

            start(b, &route, sizes[i]);
            settle(b);
            while (next_time(b) != LH_TIME_NEVER) {
                uint32_t index;

                b->now = next_time(b);
                while (lh_heap_time(&b->heap) == b->now)
                    lh_flows_event(b->flows, lh_heap_pop(&b->heap), b->now);
                while (lh_flows_arrive(b->flows, b->now, &index))
                    ck_assert_uint_eq(index, 0);
            }
            ck_assert_int_eq(b->now, 9800000 + exact_ps(sizes[i], 24000000000));
            bench_free(b);
        }
}
END_TEST

/* k equal messages on one link end together after k times the time of one; a later one never
 * catches up. */
START_TEST(flows_share_one_link_equally)
{
    const uint32_t link[] = { 0 };
    const LhRoute route = route_over(0, 1, link);
    Bench *b = bench_plain(1, NULL, LH_NETWORK_FAIR);

    for (uint32_t k = 0; k < 7; k++)
        start(b, &route, 100000000);
    drain(b);
    ck_assert_int_eq(b->now, 7 * LH_PS_PER_S / 1000);
    /* The first alone for 0.5 ms, then both at half rate: it ends at 1.5 ms; the second at 2 ms. */
    b->now = LH_PS_PER_S;
    start(b, &route, 100000000);
    settle(b);
    move_to(b, LH_PS_PER_S + LH_PS_PER_S / 2000);
    start(b, &route, 100000000);
    settle(b);
    play_instant(b); /* an outdated event: nothing ends */
    settle(b);
    while (b->live == 2)
        play_instant(b);
    ck_assert_int_eq(b->now, LH_PS_PER_S + 3 * LH_PS_PER_S / 2000);
    settle(b);
    drain(b);
    ck_assert_int_eq(b->now, LH_PS_PER_S + 2 * LH_PS_PER_S / 1000);
    bench_free(b);
}
END_TEST

static LhTopology
limited_topology(uint64_t gpus)
{
    return (LhTopology){ .name = (char *)"test",
                         .gpus_per_node = gpus,
                         .nics_per_node = 1,
                         .nic = { .bandwidth = FASTEST, .pair_p2p = 0.7 * FASTEST } };
}

static void
start_pair(Bench *b, uint32_t source, uint32_t destination)
{
    LhRoute route;

    lh_network_route(&b->network, source, destination, &route);
    start(b, &route, 100000000);
}

/* One pair reaches its limit with one message or two; the reverse direction and other pairs have
 * their own limits; four pairs share the NIC. */
START_TEST(flows_of_a_pair_keep_to_its_limit)
{
    const LhTopology topology = limited_topology(4);
    Bench *b = bench_new(&topology, 2, NULL, LH_NETWORK_FAIR);

    start_pair(b, 0, 4);
    settle(b);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 0), 0.7 * FASTEST, 1);
    start_pair(b, 0, 4);
    start_pair(b, 4, 0);
    settle(b);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 0), 0.35 * FASTEST, 1);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 1), 0.35 * FASTEST, 1);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 2), 0.7 * FASTEST, 1);
    start_pair(b, 0, 5);
    settle(b);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 0), FASTEST / 3, 1);
    ck_assert_double_eq_tol(lh_flows_rate(b->flows, 3), FASTEST / 3, 1);
    drain(b);
    for (uint32_t gpu = 0; gpu < 4; gpu++)
        start_pair(b, gpu, 4 + gpu);
    settle(b);
    for (uint32_t i = 0; i < b->messages_count; i++)
        if (is_flowing(&b->messages[i]))
            ck_assert_double_eq_tol(lh_flows_rate(b->flows, i), FASTEST / 4, 1);
    ck_assert_uint_eq(b->live, 4);
    drain(b);
    bench_free(b);
}
END_TEST

/* Executes events of models without rates, where only arrivals matter. */
static void
arrivals(Bench *b, LhTime *times)
{
    uint32_t index;

    while (next_time(b) != LH_TIME_NEVER) {
        b->now = next_time(b);
        while (lh_heap_time(&b->heap) == b->now)
            lh_flows_event(b->flows, lh_heap_pop(&b->heap), b->now);
        while (lh_flows_arrive(b->flows, b->now, &index))
            times[index] = b->now;
        settle(b);
    }
}

START_TEST(flows_of_alpha_beta_do_not_meet)
{
    const uint32_t link[] = { 0 };
    const LhRoute route = route_over(1000, 1, link);
    Bench *b = bench_plain(1, NULL, LH_NETWORK_ALPHA_BETA);
    LhTime times[5] = { 0 };

    for (uint32_t k = 0; k < 5; k++)
        start(b, &route, 100000000 * (k + 1));
    settle(b);
    arrivals(b, times);
    for (uint32_t k = 0; k < 5; k++)
        ck_assert_int_eq(times[k], 1000 + (k + 1) * LH_PS_PER_S / 1000);
    bench_free(b);
}
END_TEST

/* FIFO in order of posting: a message holds all its links at the rate of the narrowest. */
START_TEST(flows_of_fifo_queue_up)
{
    const double factors[] = { 1, 0.5 };
    const uint32_t first[] = { 0 }, both[] = { 0, 2 }, second[] = { 2 };
    const LhRoute a = route_over(1000, 1, first), l = route_over(7000, 2, both),
                  c = route_over(1000, 1, second);
    const LhTime ms = LH_PS_PER_S / 1000;
    Bench *b = bench_plain(2, factors, LH_NETWORK_FIFO);
    LhTime times[4] = { 0 };

    start(b, &a, 100000000); /* first link until 1 ms */
    start(b, &l, 100000000); /* both from 1 to 3 ms */
    start(b, &c, 100000000); /* second link from 3 to 5 ms */
    start(b, &a, 100000000); /* first link from 3 to 4 ms */
    settle(b);
    arrivals(b, times);
    ck_assert_int_eq(times[0], 1 * ms + 1000);
    ck_assert_int_eq(times[1], 3 * ms + 7000);
    ck_assert_int_eq(times[2], 5 * ms + 1000);
    ck_assert_int_eq(times[3], 4 * ms + 1000);
    bench_free(b);
}
END_TEST

/* In parallel, without interference, or in sequence: at the pair's limit, not the NIC's 1 ms. */
START_TEST(flows_of_all_models_keep_to_the_limit)
{
    const LhTime one = exact_ps(100000000, 70000000000), two = exact_ps(200000000, 70000000000);
    const struct {
        LhNetworkModel model;
        LhTime first, second;
    } cases[] = { { LH_NETWORK_FAIR, two, two },
                  { LH_NETWORK_ALPHA_BETA, one, one },
                  { LH_NETWORK_FIFO, one, 2 * one } };
    const LhTopology topology = limited_topology(1);

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Bench *b = bench_new(&topology, 2, NULL, cases[i].model);
        LhTime times[2] = { 0, 0 };

        start_pair(b, 0, 1);
        start_pair(b, 0, 1);
        settle(b);
        arrivals(b, times);
        ck_assert_int_eq(times[0], cases[i].first);
        ck_assert_int_eq(times[1], cases[i].second);
        bench_free(b);
    }
}
END_TEST

START_TEST(flows_without_bytes_take_their_latency)
{
    const uint32_t link[] = { 0 };
    const LhRoute route = route_over(12345, 1, link);

    for (int model = LH_NETWORK_FAIR; model <= LH_NETWORK_FIFO; model++) {
        Bench *b = bench_plain(1, NULL, (LhNetworkModel)model);
        LhTime times[2] = { 0, 0 };

        start(b, &route, 0);
        start(b, &route, 0);
        settle(b);
        arrivals(b, times);
        ck_assert_int_eq(times[0], 12345);
        ck_assert_int_eq(times[1], 12345);
        bench_free(b);
    }
}
END_TEST

/* Bytes of many ranks over one link are counted beyond 64 bits. */
START_TEST(flows_count_beyond_64_bits)
{
    const uint32_t both[] = { 0, 2 }, narrow[] = { 2 };
    const LhRoute a = route_over(0, 2, both), b = route_over(0, 1, narrow);
    Bench *bench = bench_plain(2, NULL, LH_NETWORK_FAIR);

    for (uint32_t i = 0; i < 5; i++) {
        lh_flows_count(bench->flows, &a, UINT64_MAX);
        lh_flows_count(bench->flows, &b, 3);
    }
    ck_assert(lh_flows_link_bytes(bench->flows, 0) == 5 * (LhWide)UINT64_MAX);
    ck_assert(lh_flows_link_bytes(bench->flows, 1) == 0);
    ck_assert(lh_flows_link_bytes(bench->flows, 2) == 5 * (LhWide)UINT64_MAX + 15);
    lh_flows_count_link(bench->flows, 1, 7 * (LhWide)UINT64_MAX);
    lh_flows_count_link(bench->flows, 1, UINT64_MAX);
    ck_assert(lh_flows_link_bytes(bench->flows, 1) == 8 * (LhWide)UINT64_MAX);
    bench_free(bench);
}
END_TEST

/* Equal calls give equal picoseconds. */
START_TEST(flows_are_deterministic)
{
    LhTime ends[2];

    for (uint32_t i = 0; i < 2; i++) {
        Bench *b = bench_plain(9, NULL, LH_NETWORK_FAIR);

        play_randomly(b, random_links, 77, 120);
        ends[i] = b->now;
        bench_free(b);
    }
    ck_assert_int_eq(ends[0], ends[1]);
}
END_TEST

LH_TEST_MAIN("flows", flows_are_max_min_fair_on_any_links, flows_are_max_min_fair_with_limits,
             flows_are_max_min_fair_on_clusters, flows_of_a_pair_keep_to_its_limit,
             flows_of_all_models_keep_to_the_limit, flows_know_the_parking_lot,
             flows_alone_take_latency_and_bytes_over_bandwidth, flows_share_one_link_equally,
             flows_of_alpha_beta_do_not_meet, flows_of_fifo_queue_up,
             flows_without_bytes_take_their_latency, flows_count_beyond_64_bits,
             flows_are_deterministic)
