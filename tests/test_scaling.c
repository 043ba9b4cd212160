/*
 * What must hold of a collective that has a cluster for itself, whatever the cluster: if all rates
 * are as many times as fast, and all latencies as many times as short, it takes as many times less;
 * a faster link, a shorter latency or another NIC never makes it slower.
 *
 * Trees of several rings share links as any messages do, and do so nearly: whoever is late makes
 * another one early (docs/model.md, "Collectives"). So do messages that are sent one after the
 * other (fifo), of which a picosecond tells which one is first.
 */
#include "base/rng.h"
#include "run_tests.h"
#include "share.h"
#include "sim_single.h"

#include <math.h>

#define CASES 4000
#define GIGA 1e9
#define LEVERS 8
#define RANKS_MAX 48
#define NETWORKS 3

/* Every time is rounded to a picosecond; there is no longer chain of them in one ring. */
#define ROUNDED_PS 200
#define ROUNDED 1e-7 /* bytes of 1e-9 of a rate that another flow lets go are not waited for */

/* Another NIC is another ring, which a byte more may fall to. */
#define BYTE 3e-5

/* Of messages one after the other. */
#define QUEUED 0.02
#define QUEUED_CASES 0.03

/* Of trees, and of rings that a lever leads another way: the most, and of how many cases more than
 * rounding. */
#define SCALED 1e-3
#define SCALED_CASES 0.001
#define MOVED 0.02
#define MOVED_CASES 0.01

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

/* A time that all factors divide. */
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

static LhTime
play(const Case *c)
{
    g_autoptr(LhSimResult) result = NULL;
    Single s;
    World w;

    single_init(&s, c->kind, c->group, c->bytes, 0, 0);
    script_init(&w, &s.script, c->ranks);
    w.topology = c->topology;
    w.params.collectives = c->model;
    w.params.network_model = c->network;
    w.device.memory_bandwidth = INFINITY; /* to add up takes no time */
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

/* Counts a case that is off by more than rounding, if it @may be. */
static void
judge(const Case *c, bool may, double off, double most, unsigned *count)
{
    g_autofree char *what = name(c);

    ck_assert_msg(may && off <= most, "%g off: %s", off, what);
    ++*count;
}

/* By how much the case is off if its cluster is @factor times as fast; 0: by rounding at most. */
static double
find_scaling_error(Case c, double factor)
{
    const double before = (double)play(&c);
    double after;

    scale(&c.topology, factor);
    after = (double)play(&c) * factor;
    return fabs(before - after) > ROUNDED_PS * fmax(factor, 1) ? fabs(after / before - 1) : 0;
}

START_TEST(faster_clusters_take_as_many_times_less)
{
    static const double factors[] = { 2, 3, 0.7, 1.1, 1000 };
    g_autoptr(LhTopology) bench = lh_topology_load("bench-platform", NULL);
    const double cases = (double)test_share(CASES);
    uint64_t drawn = 0;
    unsigned off[NETWORKS] = { 0 };

    for (uint64_t i = 0; i < test_share(CASES); i++) {
        Case c = some_case(&drawn, bench);
        bool queued;
        double error;

        c.network = (LhNetworkModel)(i % NETWORKS);
        queued = c.network == LH_NETWORK_FIFO;
        error = find_scaling_error(c, factors[i % G_N_ELEMENTS(factors)]);
        if (error > 0)
            judge(&c, queued || (is_tree(&c) && c.network == LH_NETWORK_FAIR), error,
                  queued ? QUEUED : SCALED, &off[c.network]);
    }
    ck_assert_uint_le(off[LH_NETWORK_FAIR], 1 + (unsigned)(SCALED_CASES * cases));
    ck_assert_uint_le(off[LH_NETWORK_FIFO], 1 + (unsigned)(QUEUED_CASES * cases));
}
END_TEST

/* One lever of the cluster, moved to the better; false if there is none. Where NICs have rails of
 * their own, another one is another rail to cross to. */
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

START_TEST(no_lever_makes_a_collective_slower)
{
    g_autoptr(LhTopology) bench = lh_topology_load("bench-platform", NULL);
    uint64_t drawn = 0;
    unsigned off = 0;

    for (uint64_t i = 0; i < test_share(CASES); i++) {
        const Case c = some_case(&drawn, bench);
        const LhTime before = play(&c);

        for (uint64_t lever = 0; lever < LEVERS; lever++) {
            Case moved = c;
            LhTime after;

            if (!move_lever(&moved.topology, lever))
                continue;
            after = play(&moved);
            if ((double)after >
                (double)before * (1 + (lever + 1 == LEVERS ? BYTE : ROUNDED)) + ROUNDED_PS)
                judge(&moved, true, (double)after / (double)before - 1, MOVED, &off);
        }
    }
    ck_assert_uint_le(off, 1 + (unsigned)(MOVED_CASES * (double)test_share(CASES)));
}
END_TEST

LH_TEST_MAIN("scaling", faster_clusters_take_as_many_times_less, no_lever_makes_a_collective_slower)
