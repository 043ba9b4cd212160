/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaling laws of a single collective on any cluster. If all rates are multiplied and all latencies
 * divided by a factor, its time is divided by that factor. A faster link, a shorter latency or
 * another NIC never makes it slower.
 *
 * Pairwise exchanges, step by step, obey this only approximately: an exchange that begins earlier
 * takes bandwidth from another one that the rest waits for, an anomaly of list scheduling
 * (docs/reference/model.md, "Sharing links" and "Collectives").
 *
 * Messages in queues (fifo) obey it as long as every queue has the same order. The order may change
 * only where two messages reach a queue within the rounding of times: then a picosecond decides
 * which one is first, and the other waits for all of it.
 */
#include "base/rng.h"
#include "posts.h"
#include "run_tests.h"
#include "share.h"
#include "sim_single.h"

#include <math.h>
#include <stdio.h>

#define CASES 4000
#define GIGA 1e9
#define LEVERS 8
#define NICS 7 /* index of the parameter nics_per_node */
#define RANKS_MAX 48

/* rounding: a picosecond per time, along the longest chain of a ring */
#define ROUNDED_PS 200
#define ROUNDED 1e-7 /* the simulator ignores flows that release less than 1e-9 of a rate */

/* one byte more in one ring of several */
#define BYTE 3e-5

/* Greatest share of cases in which the order of a queue may change. */
#define QUEUED_CASES 0.02

/* Pairwise exchanges: largest slowdown, and the share of cases that may slow down. */
#define MOVED 0.25
#define MOVED_CASES 0.002

/* Cases of trees, besides those of all algorithms. */
#define TREES 800

static const double factors[] = { 2, 3, 0.7, 1.1, 1000 };

typedef struct {
    LhTopology topology;
    LhCollectiveKind kind;
    LhCollectiveModel model;
    LhNetworkModel network;
    LhGroup group;
    uint32_t ranks;
    uint64_t bytes;
} Case;

static uint64_t
below(uint64_t *drawn, uint64_t limit)
{
    return lh_rng_bits(40, (*drawn)++, 0) % limit;
}

/* A latency that all factors divide. */
static LhLinkClass
some_link(uint64_t *drawn)
{
    return (LhLinkClass){ .bandwidth = GIGA * (double)(1 + below(drawn, 200)),
                          .latency_ps = 924000 * (LhTime)below(drawn, 20),
                          .ctas = 2 };
}

static void
some_cluster(uint64_t *drawn, LhTopology *t)
{
    static const LhScaleUp kinds[] = { LH_SCALE_UP_NONE, LH_SCALE_UP_SWITCH, LH_SCALE_UP_PAIRS };

    t->gpus_per_node = UINT64_C(2) << below(drawn, 3);
    t->scale_up = (int)kinds[below(drawn, 3)];
    t->nvlink = t->scale_up == LH_SCALE_UP_NONE ? (LhLinkClass){ 0 } : some_link(drawn);
    t->pcie = some_link(drawn);
    t->nic = some_link(drawn);
    t->nics_per_node = UINT64_C(1) << below(drawn, 4);
    t->nics_per_node = MIN(t->nics_per_node, t->gpus_per_node);
    t->max_nodes = 0;
    t->fabric = below(drawn, 2) > 0 ? LH_FABRIC_FAT_TREE : LH_FABRIC_IDEAL;
    if (t->fabric == LH_FABRIC_IDEAL && t->scale_up == LH_SCALE_UP_SWITCH && below(drawn, 2) > 0)
        t->fabric = LH_FABRIC_RAIL;
    t->nodes_per_leaf = 1 + below(drawn, 3);
    t->oversubscription = 1 + (double)below(drawn, 5) / 2;
    t->switch_latency_ps = 924000 * (LhTime)below(drawn, 2);
    t->collective_bandwidth = below(drawn, 4) > 0 ? 0 : some_link(drawn).bandwidth;
    t->nic.pair_p2p = below(drawn, 4) > 0 ? 0 : some_link(drawn).bandwidth;
    if (t->collective_bandwidth <= 0)
        t->nic.pair_collective = below(drawn, 4) > 0 ? 0 : some_link(drawn).bandwidth;
}

static Case
some_case(uint64_t *drawn, const LhTopology *bench)
{
    static const LhCollectiveModel models[] = { LH_COLLECTIVES_RING,   LH_COLLECTIVES_FLUID,
                                                LH_COLLECTIVES_TREE,   LH_COLLECTIVES_PAIRWISE,
                                                LH_COLLECTIVES_DIRECT, LH_COLLECTIVES_CLOSED_FORM };
    Case c = { .topology = *bench };
    uint32_t stride;

    some_cluster(drawn, &c.topology);
    c.kind = (LhCollectiveKind)below(drawn, LH_COLL_KINDS);
    c.model = models[below(drawn, G_N_ELEMENTS(models))];
    c.ranks = RANKS_MAX;
    stride = 1U << below(drawn, 3);
    c.group = (LhGroup){ 0, stride, 2 + (uint32_t)below(drawn, RANKS_MAX / stride - 1), 0, 1 };
    c.bytes = below(drawn, 2) > 0 ? 1 + below(drawn, 1U << 16) : 1 + below(drawn, 1U << 28);
    return c;
}

static void
set_up(World *w, Single *s, const Case *c)
{
    single_init(s, c->kind, c->group, c->bytes, 0, 0);
    script_init(w, &s->script, c->ranks);
    w->topology = c->topology;
    w->params.collectives = c->model;
    w->params.network_model = c->network;
    w->device.memory_bandwidth = INFINITY; /* reductions take no time */
}

static LhTime
play(const Case *c)
{
    g_autoptr(LhSimResult) result = NULL;
    Single s;
    World w;

    set_up(&w, &s, c);
    result = world_run(&w);
    world_clear(&w);
    return result->makespan_ps;
}

static void
scale_link(LhLinkClass *link, double factor)
{
    link->bandwidth *= factor;
    link->pair_p2p *= factor;
    link->pair_collective *= factor;
    link->latency_ps = llround((double)link->latency_ps / factor);
}

static void
scale(LhTopology *t, double factor)
{
    scale_link(&t->nvlink, factor);
    scale_link(&t->pcie, factor);
    scale_link(&t->nic, factor);
    t->collective_bandwidth *= factor;
    t->switch_latency_ps = llround((double)t->switch_latency_ps / factor);
}

static char *
name(const Case *c)
{
    const LhTopology *t = &c->topology;

    return g_strdup_printf(
        "%s, %s of %" G_GUINT64_FORMAT " B by %s among %u x %u of nodes of %d GPUs, "
        "%d NICs, scale-up %d, fabric %d",
        lh_network_model_names[c->network], lh_collective_names[c->kind], c->bytes,
        lh_collective_model_names[c->model], c->group.count, c->group.stride, (int)t->gpus_per_node,
        (int)t->nics_per_node, t->scale_up, t->fabric);
}

static bool
is_tree(const Case *c)
{
    return c->kind == LH_COLL_ALL_REDUCE && c->model == LH_COLLECTIVES_TREE;
}

/* Whether messages take bandwidth from each other. */
static bool
competes(const Case *c)
{
    return c->kind == LH_COLL_ALL_TO_ALL && c->model == LH_COLLECTIVES_PAIRWISE;
}

static void
check_scaling(Case c, double factor)
{
    g_autofree char *what = name(&c);
    const double before = (double)play(&c);
    double after;

    scale(&c.topology, factor);
    after = (double)play(&c) * factor;
    ck_assert_msg(fabs(before - after) <= ROUNDED_PS * fmax(factor, 1), "relative error %g: %s",
                  after / before - 1, what);
}

START_TEST(faster_clusters_take_as_many_times_less)
{
    g_autoptr(LhTopology) bench = lh_topology_load("bench-platform", NULL);
    uint64_t drawn = 0;

    for (uint64_t i = 0; i < test_share(CASES); i++) {
        Case c = some_case(&drawn, bench);

        c.network = i % 2 == 0 ? LH_NETWORK_FAIR : LH_NETWORK_ALPHA_BETA;
        check_scaling(c, factors[i % G_N_ELEMENTS(factors)]);
    }
}
END_TEST

static Case
some_tree(uint64_t *drawn, const LhTopology *bench)
{
    Case c = some_case(drawn, bench);

    c.kind = LH_COLL_ALL_REDUCE;
    c.model = LH_COLLECTIVES_TREE;
    return c;
}

START_TEST(faster_clusters_have_faster_trees)
{
    g_autoptr(LhTopology) bench = lh_topology_load("bench-platform", NULL);
    uint64_t drawn = 0;

    for (uint64_t i = 0; i < test_share(TREES); i++)
        check_scaling(some_tree(&drawn, bench), factors[i % G_N_ELEMENTS(factors)]);
}
END_TEST

/* ---- queues (fifo) ---- */

/* All messages of the case in the order of posting. Caller unrefs. */
static GArray *
play_queues(const Case *c, LhTime *makespan_ps)
{
    g_autoptr(LhSimResult) result = NULL;
    GArray *posts;
    Single s;
    World w;

    set_up(&w, &s, c);
    w.params.path = w.params.precedence = true;
    result = world_run(&w);
    *makespan_ps = result->makespan_ps;
    posts = posts_of(result->precedence, &w.network, &c->group, c->kind != LH_COLL_ALL_TO_ALL);
    world_clear(&w);
    return posts;
}

/* Each message is rounded, and one may wait for all others. */
static double
rounded_ps(const GArray *posts, double factor)
{
    return fmax(ROUNDED_PS, posts->len) * fmax(factor, 1);
}

/* Whether the swapped messages arrive at the same time up to rounding, or two messages before
 * them are indistinguishable. */
static bool
is_of_rounding(const GArray *posts, const Swap *swap, double factor)
{
    const double most_ps = rounded_ps(posts, factor);

    return ((double)swap->apart_ps <= most_ps &&
            (double)swap->others_apart_ps * factor <= most_ps) ||
           first_alike_ps(posts, most_ps) <= swap->at_ps;
}

/* Returns whether all queues keep their order; then times scale exactly. Otherwise checks that
 * rounding decided the first swap. */
static bool
queues_scale(const Case *c, double factor)
{
    g_autofree char *what = name(c);
    Case scaled = *c;
    g_autoptr(GArray) posts = NULL;
    g_autoptr(GArray) others = NULL;
    LhTime before_ps, after_ps;
    Swap swap;

    scale(&scaled.topology, factor);
    posts = play_queues(c, &before_ps);
    others = play_queues(&scaled, &after_ps);
    if (find_swap(posts, others, &swap)) {
        ck_assert_msg(is_of_rounding(posts, &swap, factor), "%d and %d ps apart: %s",
                      (int)swap.apart_ps, (int)swap.others_apart_ps, what);
        return false;
    }
    ck_assert_msg(fabs((double)before_ps - (double)after_ps * factor) <= rounded_ps(posts, factor),
                  "relative error %g: %s", (double)after_ps * factor / (double)before_ps - 1, what);
    return true;
}

START_TEST(queues_of_one_order_take_as_many_times_less)
{
    g_autoptr(LhTopology) bench = lh_topology_load("bench-platform", NULL);
    const unsigned cases = (unsigned)test_share(CASES);
    uint64_t drawn = 0;
    unsigned swapped = 0;

    for (uint64_t i = 0; i < cases; i++) {
        Case c = some_case(&drawn, bench);

        c.network = LH_NETWORK_FIFO;
        swapped += !queues_scale(&c, factors[i % G_N_ELEMENTS(factors)]);
    }
    printf("of %u cases, %u have messages that a picosecond puts in order\n", cases, swapped);
    ck_assert_uint_le(swapped, 1 + (unsigned)(QUEUED_CASES * cases));
}
END_TEST

/* A short message and one of 1 ms to the same receiver, which computes once it has the short
 * one. The sender of the short one is ready at @ready_ps, the other at 1 us. */
static LhTime
play_two(LhNetworkModel network, LhTime ready_ps)
{
    const Line lines[] = {
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, 3000000 } } },
        { .rank = 0,
          .kind = LH_OP_EXCHANGE,
          .stream = COMM2,
          .notes = { { false, 2, 0, 300000000 } } },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * MS, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = ready_ps },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, 3000000 } }, .after = { 1 } },
        { .rank = 2, .kind = LH_OP_COMPUTE, .time_ps = US },
        { .rank = 2,
          .kind = LH_OP_EXCHANGE,
          .notes = { { true, 0, 0, 300000000 } },
          .after = { 1 } },
    };
    Script script = { .lines = lines, .count = G_N_ELEMENTS(lines) };
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 3);
    w.params.network_model = network;
    result = world_run(&w);
    world_clear(&w);
    return result->makespan_ps;
}

/* Of two messages that arrive at the same time either may be first. A little earlier or later
 * the other one is, and whatever depends on it waits for all of the first; no tie-breaking rule
 * avoids that. */
START_TEST(a_picosecond_decides_who_waits)
{
    ck_assert_int_eq(play_two(LH_NETWORK_FIFO, US + 1) - play_two(LH_NETWORK_FIFO, US - 1), MS + 1);
    ck_assert_int_le(play_two(LH_NETWORK_FAIR, US + 1) - play_two(LH_NETWORK_FAIR, US - 1), 4);
}
END_TEST

/* Improves one parameter of the cluster; returns false if it is absent. With rails, another NIC
 * means another rail to cross to. */
static bool
move_lever(LhTopology *t, uint64_t lever)
{
    LhLinkClass *const links[] = { &t->nvlink, &t->pcie, &t->nic };

    if (lever < 3) {
        links[lever]->bandwidth *= 1.5;
        return links[lever]->bandwidth > 0;
    }
    if (lever < 6) {
        links[lever - 3]->latency_ps /= 2;
        return links[lever - 3]->bandwidth > 0;
    }
    if (lever == 6) {
        t->oversubscription = 1;
        return t->fabric == LH_FABRIC_FAT_TREE;
    }
    t->nics_per_node *= 2;
    return t->nics_per_node <= t->gpus_per_node && t->fabric != LH_FABRIC_RAIL;
}

/* Time of a case before and after a parameter is improved, and the relative rounding allowed
 * since messages are whole bytes and picoseconds. */
typedef struct {
    LhTime before, after;
    double rounded;
} Move;

/*
 * Returns false if the case has no such parameter. Another NIC means another ring, which may carry
 * a byte more; it also means another tree with other edges, so trees are excluded. If GPUs are in
 * pairs and a node is not full, a ring that begins at another GPU may split pairs: it crosses PCIe
 * more often and adds latency, so latencies are zero here.
 */
static bool
play_move(const Case *c, uint64_t lever, Move *move)
{
    Case moved = *c;

    move->rounded = lever == NICS ? BYTE : ROUNDED;
    if (lever == NICS && c->topology.scale_up == LH_SCALE_UP_PAIRS) {
        moved.topology.nvlink.latency_ps = moved.topology.pcie.latency_ps = 0;
        move->before = play(&moved);
        move->rounded = 2 * (double)c->topology.nics_per_node / (double)c->bytes;
    }
    if ((lever == NICS && is_tree(c)) || !move_lever(&moved.topology, lever))
        return false;
    move->after = play(&moved);
    return true;
}

/* Checks that no parameter slows the case by more than rounding, unless messages compete; counts
 * those exceptions in @off. */
static void
check_levers(const Case *c, unsigned *off)
{
    const LhTime before = play(c);

    for (uint64_t lever = 0; lever < LEVERS; lever++) {
        Move move = { .before = before };
        g_autofree char *what = name(c);
        double slower;

        if (!play_move(c, lever, &move))
            continue;
        slower = (double)move.after / (double)move.before - 1;
        if ((double)move.after <= (double)move.before * (1 + move.rounded) + ROUNDED_PS)
            continue;
        ck_assert_msg(competes(c) && slower <= MOVED, "parameter %d, %g slower: %s", (int)lever,
                      slower, what);
        ++*off;
    }
}

START_TEST(no_lever_makes_a_collective_slower)
{
    g_autoptr(LhTopology) bench = lh_topology_load("bench-platform", NULL);
    uint64_t drawn = 0;
    unsigned off = 0;

    for (uint64_t i = 0; i < test_share(CASES); i++) {
        const Case c = some_case(&drawn, bench);

        check_levers(&c, &off);
    }
    ck_assert_uint_le(off, 1 + (unsigned)(MOVED_CASES * (double)test_share(CASES)));
}
END_TEST

START_TEST(no_lever_makes_a_tree_slower)
{
    g_autoptr(LhTopology) bench = lh_topology_load("bench-platform", NULL);
    uint64_t drawn = 0;
    unsigned off = 0;

    for (uint64_t i = 0; i < test_share(TREES); i++) {
        const Case c = some_tree(&drawn, bench);

        check_levers(&c, &off);
    }
}
END_TEST

LH_TEST_MAIN("scaling", faster_clusters_take_as_many_times_less, faster_clusters_have_faster_trees,
             queues_of_one_order_take_as_many_times_less, a_picosecond_decides_who_waits,
             no_lever_makes_a_collective_slower, no_lever_makes_a_tree_slower)
