/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives with a measured total time, simulated as flows. Alone they take that time to the
 * picosecond; beside others they share links, and no link carries more than its capacity (a
 * violation would be detected). Invariants of every collective on every shipped cluster: links are
 * never used more than once over, faster links make nothing slower, and the part of bytes scales
 * with rates.
 */
#include "base/files/data_files.h"
#include "base/rng.h"
#include "run_tests.h"
#include "share.h"
#include "sim/network/collectives/collective_times.h"
#include "sim/network/collectives/nccl_measured.h"
#include "sim/network/levers.h"
#include "sim/sim_private.h"
#include "sim_single.h"

#include <math.h>

#define ROUNDED 1e-9

static const char *const measured[] = { "hgx-h100", "hgx-b200",  "dgx-a100-80g",
                                        "hgx-a800", "pcie-l40s", "pcie-rtx-pro-6000",
                                        NULL };

/* Runs the script on a shipped cluster whose topology is a copy that may be changed. */
static void
world_on(World *w, const char *topology, Script *script, uint32_t ranks)
{
    script_init(w, script, ranks);
    lh_topology_free(w->loaded_topology);
    w->loaded_topology = lh_topology_load(topology, NULL);
    ck_assert_ptr_nonnull(w->loaded_topology);
    w->topology = *w->loaded_topology;
    w->params.collectives = LH_COLLECTIVES_AUTO;
}

/* ---- measured times ---- */

typedef struct {
    LhTime whole_ps, floor_ps, bound_ps;
} Known;

/* The known time of the collective on the links of the world, within one node. */
static Known
known_of(World *w, LhCollectiveKind kind, LhGroup group, uint64_t bytes)
{
    const uint32_t ranks = lh_program_ranks(w->program);
    LhNcclMeasured *native;
    double seconds, floor_s, bound_s;
    int provenance;

    ck_assert(lh_network_init(&w->network, &w->topology, 1, ranks, w->faults, NULL));
    native = lh_nccl_measured_new(&w->network, &w->device, &group);
    ck_assert(lh_nccl_measured_is_known(native, kind));
    seconds = lh_nccl_measured_parts(native, kind, (double)bytes, &floor_s, &provenance);
    bound_s = lh_link_bound_s_per_byte(&w->network, &group, kind,
                                       lh_nccl_measured_algorithm(native, kind)) *
              lh_collective_printed_bytes(kind, lh_group_size(&group), (double)bytes);
    ck_assert_double_eq(seconds,
                        lh_nccl_measured_seconds(native, kind, (double)bytes, &provenance));
    lh_nccl_measured_free(native);
    return (Known){ lh_time_from_ps(seconds * 1e12), lh_time_from_ps(floor_s * 1e12),
                    (LhTime)ceil(bound_s * 1e12) };
}

static void
check_alone(const char *topology, LhCollectiveKind kind, uint32_t ranks, uint64_t bytes,
            double rate, LhNetworkModel network)
{
    g_autoptr(LhSimResult) result = NULL;
    Known known;
    Single one;
    World w;

    single_init(&one, kind, first_ranks(ranks), bytes, 1, 50 * US);
    world_on(&w, topology, &one.script, ranks);
    w.topology.nvlink.bandwidth *= rate;
    w.topology.pcie.bandwidth *= rate;
    w.params.network_model = network;
    w.params.collectives = LH_COLLECTIVES_NCCL;
    known = known_of(&w, kind, first_ranks(ranks), bytes);
    result = world_run(&w);
    ck_assert_msg(ABS(result->makespan_ps - 50 * US - MAX(known.whole_ps, known.bound_ps)) <= 1,
                  "%s, %s of %" G_GUINT64_FORMAT " on %u: %" G_GINT64_FORMAT
                  " ps, and %" G_GINT64_FORMAT " by its row, %" G_GINT64_FORMAT " by its links",
                  topology, lh_collective_names[kind], bytes, ranks, result->makespan_ps - 50 * US,
                  known.whole_ps, known.bound_ps);
    /* A file's time on its own links is never below the link bound. */
    if (rate == 1)
        ck_assert_int_ge(known.whole_ps, known.bound_ps);
    world_clear(&w);
}

START_TEST(alone_they_take_their_times)
{
    static const uint64_t sizes[] = { 0, 8, 4096, 24000, 1 << 20, 3 << 20, 64 << 20, 1 << 29 };
    static const double rates[] = { 1, 0.25, 3 };
    static const LhCollectiveKind kinds[] = { LH_COLL_ALL_GATHER, LH_COLL_REDUCE_SCATTER,
                                              LH_COLL_ALL_REDUCE, LH_COLL_ALL_TO_ALL };

    for (gsize t = 0; measured[t] != NULL; t++)
        for (gsize k = 0; k < G_N_ELEMENTS(kinds); k++)
            for (gsize s = 0; s < G_N_ELEMENTS(sizes); s++)
                for (uint32_t ranks = 2; ranks <= 8; ranks += 3)
                    check_alone(measured[t], kinds[k], ranks, sizes[s], rates[(s + k) % 3],
                                (LhNetworkModel)((t + k + s) % 3));
}
END_TEST

/* Two collectives of the same ranks, on two streams. */
static void
two_lines(Line *lines, LhCollectiveKind first, LhCollectiveKind second, uint32_t ranks,
          uint64_t bytes)
{
    for (uint32_t r = 0; r < ranks; r++) {
        lines[2 * r] = (Line){
            .rank = r, .kind = LH_OP_COLLECTIVE, .collective = first, .group = ranks, .bytes = bytes
        };
        lines[2 * r + 1] = lines[2 * r];
        lines[2 * r + 1].collective = second;
        lines[2 * r + 1].stream = COMM2;
    }
}

START_TEST(two_at_once_share)
{
    static const LhCollectiveKind kinds[] = { LH_COLL_ALL_GATHER, LH_COLL_ALL_REDUCE,
                                              LH_COLL_ALL_TO_ALL };
    const uint64_t bytes = 64 << 20;

    for (gsize t = 0; measured[t] != NULL; t++) {
        for (gsize k = 0; k < G_N_ELEMENTS(kinds); k++) {
            g_autoptr(LhSimResult) result = NULL;
            Line lines[16];
            Script script = { .lines = lines, .count = 16 };
            Known known;
            World w;

            two_lines(lines, kinds[k], kinds[k], 8, bytes);
            world_on(&w, measured[t], &script, 8);
            known = known_of(&w, kinds[k], first_ranks(8), bytes);
            result = world_run(&w);
            /* Not both at full rate, unless their links have capacity for both. */
            ck_assert_int_ge(result->makespan_ps, MAX(known.whole_ps, 2 * known.bound_ps) - 1);
            ck_assert_int_le(result->makespan_ps,
                             2 * (known.whole_ps - known.floor_ps) + known.floor_ps + 2);
            if (2 * known.bound_ps <= known.whole_ps - known.floor_ps) /* the links have capacity
                                                                        * for both */
                ck_assert_int_le(ABS(result->makespan_ps - known.whole_ps), 1);
            ck_assert_double_le(result->busiest_link_utilisation, 1 + ROUNDED);
            world_clear(&w);
        }
    }
}
END_TEST

/* Latencies are not part of the time of bytes, which is shared. */
START_TEST(latencies_are_of_the_floor)
{
    Script script = { 0 };
    Known once, thrice;
    World w;

    world_on(&w, "hgx-h100", &script, 8);
    once = known_of(&w, LH_COLL_ALL_GATHER, first_ranks(8), 1 << 20);
    w.topology.nvlink.latency_ps *= 3;
    thrice = known_of(&w, LH_COLL_ALL_GATHER, first_ranks(8), 1 << 20);
    ck_assert_int_gt(thrice.floor_ps, once.floor_ps);
    ck_assert_int_le(ABS((thrice.whole_ps - thrice.floor_ps) - (once.whole_ps - once.floor_ps)), 1);
    world_clear(&w);
}
END_TEST

/* The critical path charges bytes to the most loaded links. */
START_TEST(paths_name_the_links)
{
    g_autoptr(LhSimResult) result = NULL;
    LhTime links_ps = 0;
    Known known;
    Single one;
    World w;

    single_init(&one, LH_COLL_ALL_GATHER, first_ranks(8), 1 << 20, 0, 0);
    world_on(&w, "hgx-h100", &one.script, 8);
    w.params.path = true;
    known = known_of(&w, LH_COLL_ALL_GATHER, first_ranks(8), 1 << 20);
    result = world_run(&w);
    for (guint i = 0; i < result->path->len; i++) {
        const LhPathStep *step = &g_array_index(result->path, LhPathStep, i);

        if (step->kind != LH_STEP_LINKS)
            continue;
        ck_assert_uint_eq(step->tiers, 1u << LH_TIER_NVLINK);
        links_ps += step->to_ps - step->from_ps;
    }
    ck_assert_int_le(ABS(links_ps - (known.whole_ps - known.floor_ps)), 1);
    world_clear(&w);
}
END_TEST

/* Two ranks of eight are simulated, and all eight count as senders. */
START_TEST(rows_are_folded)
{
    static const LhCollectiveKind kinds[] = { LH_COLL_ALL_GATHER, LH_COLL_ALL_REDUCE,
                                              LH_COLL_ALL_TO_ALL, LH_COLL_BROADCAST };

    for (gsize k = 0; k < G_N_ELEMENTS(kinds); k++) {
        g_autoptr(LhSimResult) folded = NULL, all = NULL;
        Line lines[16];
        Script script = { .lines = lines, .count = 16 };
        World w;

        two_lines(lines, kinds[k], LH_COLL_ALL_GATHER, 8, 16 << 20);
        world_on(&w, "hgx-h100", &script, 8);
        w.params.compute_time = NULL;
        w.params.collectives = LH_COLLECTIVES_NCCL;
        w.program->symmetry = (LhSymmetry){ .row = 8, .shift = 1, .shifts = 1 };
        folded = world_run(&w);
        w.params.unfolded = true;
        all = world_run(&w);
        ck_assert_int_eq(folded->makespan_ps, all->makespan_ps);
        ck_assert(folded->link_bytes[LH_TIER_NVLINK] == all->link_bytes[LH_TIER_NVLINK]);
        ck_assert_double_eq_tol(folded->tier_use[LH_TIER_NVLINK].used_sum,
                                all->tier_use[LH_TIER_NVLINK].used_sum, 1e-9);
        for (uint32_t r = 0; r < 8; r++)
            ck_assert_uint_eq(folded->ranks[r].bytes_sent, all->ranks[r].bytes_sent);
        if (kinds[k] != LH_COLL_BROADCAST)
            ck_assert_uint_eq(folded->simulated_ranks, 2);
        world_clear(&w);
    }
}
END_TEST

/* Rings leave nodes over all NICs, with pieces of unequal size; chains end before their root.
 * Two representatives simulate a row if its links carry the same bytes; otherwise there is no
 * folding. */
START_TEST(rings_of_nodes_carry_their_bytes)
{
    static const struct {
        LhCollectiveKind kind;
        uint64_t hops, times; /* hops of each ring; how many times a hop carries the bytes */
    } cases[] = { { LH_COLL_ALL_GATHER, 16, 15 },
                  { LH_COLL_REDUCE_SCATTER, 16, 15 },
                  { LH_COLL_ALL_REDUCE, 16, 30 },
                  { LH_COLL_BROADCAST, 15, 1 } };
    const uint64_t bytes = (1 << 20) + 3; /* not divisible among eight rings */

    for (gsize i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
        const LhCollectiveKind kind = cases[i / 2].kind;
        const uint64_t carried = 2 * cases[i / 2].times * bytes;
        g_autoptr(LhSimResult) result = NULL;
        Single one;
        World w;

        single_init(&one, kind, first_ranks(16), bytes, 0, 0);
        world_on(&w, "hgx-h100", &one.script, 16);
        w.params.compute_time = NULL;
        w.params.collectives = LH_COLLECTIVES_NCCL;
        w.params.unfolded = i % 2 == 1;
        w.program->symmetry = (LhSymmetry){ .row = 8, .shift = 1, .shifts = 1 };
        result = world_run(&w);
        ck_assert_uint_eq(
            (uint64_t)(result->link_bytes[LH_TIER_NVLINK] + result->link_bytes[LH_TIER_NIC]),
            carried * cases[i / 2].hops);
        ck_assert(result->link_bytes[LH_TIER_PCIE] == result->link_bytes[LH_TIER_NIC]);
        if (kind != LH_COLL_BROADCAST) /* from each node to the other */
            ck_assert_uint_eq((uint64_t)result->link_bytes[LH_TIER_NIC], 2 * carried);
        for (uint32_t r = 0; r < 16; r++)
            ck_assert_uint_eq(result->ranks[r].bytes_sent, kind == LH_COLL_BROADCAST && r == 15
                                                               ? 0
                                                               : cases[i / 2].times * bytes);
        world_clear(&w);
    }
}
END_TEST

/* A message gets its share beside a collective, which gets the rest. */
START_TEST(messages_share_with_them)
{
    const uint64_t bytes = 64 << 20;
    g_autoptr(LhSimResult) both = NULL;
    Line lines[10];
    Script script = { .lines = lines, .count = 10 };
    double seconds;
    Known known;
    World w;

    for (uint32_t r = 0; r < 8; r++)
        lines[r] = (Line){ .rank = r,
                           .kind = LH_OP_COLLECTIVE,
                           .collective = LH_COLL_ALL_GATHER,
                           .group = 8,
                           .bytes = bytes };
    for (uint32_t r = 0; r < 2; r++)
        lines[8 + r] = (Line){ .rank = r,
                               .kind = LH_OP_EXCHANGE,
                               .stream = COMM2,
                               .notes = { { r == 0, 1 - r, 0, 7 * bytes } } };
    world_on(&w, "hgx-h100", &script, 8);
    known = known_of(&w, LH_COLL_ALL_GATHER, first_ranks(8), bytes);
    both = world_run(&w);
    /* The link out of rank 0 carries both and is full until the first one ends. */
    seconds = 14 * (double)bytes / w.topology.nvlink.bandwidth;
    ck_assert_double_ge((double)both->makespan_ps, seconds * 1e12);
    ck_assert_double_le((double)both->makespan_ps, seconds * 1e12 + (double)known.floor_ps);
    ck_assert_double_gt(both->busiest_link_utilisation, 0.98);
    ck_assert_double_le(both->busiest_link_utilisation, 1 + ROUNDED);
    world_clear(&w);
}
END_TEST

/* A reduction in an NVSwitch moves bytes once up and once down, and a slice of it again. */
START_TEST(switches_sum)
{
    const uint64_t bytes = 64 << 20; /* per rank */
    g_autoptr(LhSimResult) result = NULL;
    Single one;
    World w;

    single_init(&one, LH_COLL_ALL_REDUCE, first_ranks(8), bytes, 0, 0);
    world_on(&w, "hgx-h100", &one.script, 8);
    result = world_run(&w);
    for (uint32_t r = 0; r < 8; r++)
        ck_assert_uint_eq(result->ranks[r].bytes_sent, 9 * bytes);
    ck_assert_uint_eq((uint64_t)result->link_bytes[LH_TIER_NVLINK], 16 * 9 * bytes);
    world_clear(&w);
}
END_TEST

/* 1 MiB from each rank to every rank whose distance is no multiple of three, and one part more
 * to rank 0. */
static uint32_t
unequal_piece(uint32_t from, uint32_t to)
{
    return (to + 8 - from) % 3 == 0 ? 0 : 1 + (to == 0);
}

static uint32_t
one_step(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 1;
}

static void
emit_unequal(LhEmitter *e, uint32_t step)
{
    uint32_t sent[8], received[8], all_sent = 0, all_received = 0;

    (void)step;
    for (uint32_t i = 0; i < 8; i++) {
        sent[i] = unequal_piece(e->rank, i);
        received[i] = unequal_piece(i, e->rank);
        all_sent += sent[i];
        all_received += received[i];
    }
    lh_emit_collective(e, COMM, LH_COLL_ALL_TO_ALL, first_ranks(8));
    lh_emit_tensor_uneven(e, (LhRegion){ .slot = 0, .count = all_sent },
                          (LhRegion){ .slot = 1, .count = all_received }, sent, received);
}

static LhSimResult *
play_unequal(LhCollectiveModel model, Known *known)
{
    static const LhGenerator generator = { .steps = one_step, .emit = emit_unequal };
    const LhProgramParams params = attention(8, 8, 1, 1, 1);
    LhProgram *program = lh_program_create("unequal", &generator, &params, LH_PLACE_CONTIGUOUS);
    LhSimResult *result;
    World w;

    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    lh_pass_add_slot(program, "from", LH_TENSOR_Q, LH_SLOT_INPUT, 16, 1 << 20, 2);
    lh_pass_add_slot(program, "to", LH_TENSOR_Q, LH_SLOT_TEMP, 16, 1 << 20, 2);
    world_init(&w, "hgx-h100", program);
    w.device.kernel_launch_ps = 0;
    w.params.collectives = model;
    /* Rank 0 receives most: two parts from each of five ranks. */
    *known = known_of(&w, LH_COLL_ALL_TO_ALL, first_ranks(8), 10 * (UINT64_C(1) << 20) * 8 / 7);
    result = world_run(&w);
    world_clear(&w);
    return result;
}

START_TEST(unequal_pieces_are_carried)
{
    Known known;
    g_autoptr(LhSimResult) measured_one = play_unequal(LH_COLLECTIVES_AUTO, &known);
    g_autoptr(LhSimResult) messages = play_unequal(LH_COLLECTIVES_RING, &known);

    ck_assert_int_le(ABS(measured_one->makespan_ps - known.whole_ps), 2);
    ck_assert_int_ne(measured_one->makespan_ps, messages->makespan_ps);
    ck_assert(measured_one->link_bytes[LH_TIER_NVLINK] == messages->link_bytes[LH_TIER_NVLINK]);
    for (uint32_t r = 0; r < 8; r++)
        ck_assert_uint_eq(measured_one->ranks[r].bytes_sent, messages->ranks[r].bytes_sent);
    /* the link into rank 0 */
    ck_assert_uint_eq(measured_one->busiest_link, messages->busiest_link);
    ck_assert_double_eq_tol(measured_one->busiest_link_utilisation *
                                (double)measured_one->makespan_ps,
                            messages->busiest_link_utilisation * (double)messages->makespan_ps, 1);
}
END_TEST

/* ---- a link above its capacity ---- */

START_TEST(overuse_is_an_error)
{
    static const double uses[] = { 0.5, 1, 1 + 1e-7, 1.16 };

    for (gsize i = 0; i < G_N_ELEMENTS(uses); i++) {
        const LhSymmetryGroups fold = { .of = { 1, 1, 1 }, .kept = 1, .ranks = 8 };
        LhEngine engine = { 0 };
        LhSimResult *result;
        Single one;
        World w;

        single_init(&one, LH_COLL_ALL_GATHER, first_ranks(8), 1, 0, 0);
        world_on(&w, "hgx-h100", &one.script, 8);
        ck_assert(lh_network_init(&w.network, &w.topology, 1, 8, NULL, NULL));
        lh_engine_init(&engine, &w.params, &fold);
        engine.results[3].finish_ps = LH_PS_PER_S;
        lh_flows_count_link(engine.moving.flows, 4,
                            (LhWide)(uses[i] * w.topology.nvlink.bandwidth));
        result = lh_engine_summarise(&engine);
        if (uses[i] <= 1) {
            ck_assert_ptr_null(engine.error);
        } else {
            ck_assert_ptr_nonnull(engine.error);
            ck_assert_int_eq(engine.error->code, LH_ERROR_RUNTIME);
            ck_assert_ptr_nonnull(strstr(engine.error->message, "internal: utilisation of link "));
        }
        if (uses[i] > 1.1)
            ck_assert_ptr_nonnull(
                strstr(engine.error->message, " is 1.16, more than its bandwidth"));
        g_clear_error(&engine.error);
        lh_sim_result_free(result);
        lh_engine_clear(&engine);
        world_clear(&w);
    }
}
END_TEST

/* ---- all clusters, collectives and networks ---- */

static uint32_t
below(uint64_t seed, uint64_t what, uint32_t bound)
{
    return (uint32_t)(lh_rng_bits(seed, what, 0) % bound);
}

static uint64_t
bytes_of(uint64_t seed, uint64_t what)
{
    return (UINT64_C(1) << (4 + below(seed, what, 22))) + below(seed, what + 100, 3000);
}

/* A random case: a cluster and models. */
typedef struct {
    const char *topology;
    uint32_t ranks, nodes;
    LhCollectiveModel model;
    LhNetworkModel network;
    LhCollectiveKind kind;
    uint64_t bytes;
} Case;

static Case
case_of(uint64_t seed)
{
    g_auto(GStrv) names = lh_data_list("topologies");
    Case c = { .network = (LhNetworkModel)below(seed, 2, 3),
               .model = (LhCollectiveModel)below(seed, 3, LH_COLLECTIVES_AUTO + 1),
               .kind = (LhCollectiveKind)below(seed, 4, LH_COLL_KINDS),
               .bytes = bytes_of(seed, 5) };
    const char *name = names[below(seed, 1, g_strv_length(names))];
    g_autoptr(LhTopology) t = lh_topology_load(name, NULL);
    const uint32_t most =
        t->nics_per_node == 0 || t->max_nodes == 1 ? (uint32_t)t->gpus_per_node : 24;

    if (below(seed, 6, 2) == 0)
        c.model = LH_COLLECTIVES_AUTO;
    c.topology = g_intern_string(name);
    c.ranks = most < 2 ? 1 : 2 + below(seed, 7, most - 1);
    c.nodes = (c.ranks - 1) / (uint32_t)t->gpus_per_node + 1;
    return c;
}

static LhSimResult *
play_case(const Case *c, Script *script, void (*change)(LhTopology *, double), double by)
{
    LhSimResult *result;
    World w;

    world_on(&w, c->topology, script, c->ranks);
    w.params.network_model = c->network;
    w.params.collectives = c->model;
    w.device.memory_bandwidth = INFINITY; /* reductions of one-shot algorithms move no bytes on
                                           * links */
    if (change != NULL)
        change(&w.topology, by);
    result = world_run(&w);
    world_clear(&w);
    return result;
}

/* Several collectives and messages at once. */
START_TEST(no_link_carries_more_than_it_can)
{
    const uint64_t cases = test_share(500);

    for (uint64_t seed = 1; seed <= cases; seed++) {
        const Case c = case_of(seed);
        g_autofree Line *lines = g_new0(Line, 3 * c.ranks);
        Script script = { .lines = lines, .count = 3 * c.ranks };
        g_autoptr(LhSimResult) result = NULL;

        if (c.ranks < 2)
            continue;
        two_lines(lines, c.kind, (LhCollectiveKind)below(seed, 8, LH_COLL_KINDS), c.ranks, c.bytes);
        for (uint32_t r = 0; r < c.ranks; r++)
            lines[2 * c.ranks + r] =
                (Line){ .rank = r,
                        .kind = LH_OP_EXCHANGE,
                        .stream = COMM,
                        .notes = { { true, (r + 1) % c.ranks, 0, c.bytes },
                                   { false, (r + c.ranks - 1) % c.ranks, 0, c.bytes } } };
        result = play_case(&c, &script, NULL, 1);
        if (c.network != LH_NETWORK_ALPHA_BETA && c.model != LH_COLLECTIVES_CLOSED_FORM)
            ck_assert_double_le(result->busiest_link_utilisation,
                                1 + ROUNDED + (double)result->events / (double)result->makespan_ps);
    }
}
END_TEST

static void
scale_rates(LhTopology *t, double by)
{
    t->nvlink.bandwidth *= by;
    t->pcie.bandwidth *= by;
    lh_pcie_scale_rates(&t->tree.rates, by);
    t->nic.bandwidth *= by;
    t->nic.pair_p2p *= by;
    t->nic.pair_collective *= by;
    t->collective_bandwidth *= by;
}

static void
raise_nvlink(LhTopology *t, double by)
{
    t->nvlink.bandwidth *= by;
}

static void
raise_pcie(LhTopology *t, double by)
{
    t->pcie.bandwidth *= by;
    lh_pcie_scale_rates(&t->tree.rates, by);
}

static void
raise_nics(LhTopology *t, double by)
{
    t->nic.bandwidth *= by;
}

static void
lower_latencies(LhTopology *t, double by)
{
    t->nvlink.latency_ps = (LhTime)((double)t->nvlink.latency_ps / by);
    t->pcie.latency_ps = (LhTime)((double)t->pcie.latency_ps / by);
    t->nic.latency_ps = (LhTime)((double)t->nic.latency_ps / by);
}

static void
scale_rates_alone(LhTopology *t, double by)
{
    scale_rates(t, by);
    lh_levers_scale(t, LH_LEVER_LATENCY, LH_LEVERS_ALL, INFINITY);
}

static void (*const raises[])(LhTopology *, double) = { scale_rates, raise_nvlink, raise_pcie,
                                                        raise_nics, lower_latencies };

START_TEST(faster_links_make_nothing_slower)
{
    const uint64_t cases = test_share(500);

    for (uint64_t seed = 1; seed <= cases; seed++) {
        const Case c = case_of(seed);
        const uint32_t raise = below(seed, 9, G_N_ELEMENTS(raises));
        g_autoptr(LhSimResult) before = NULL, after = NULL;
        Single one;

        single_init(&one, c.kind, first_ranks(c.ranks), c.bytes, 0, 0);
        before = play_case(&c, &one.script, NULL, 1);
        after = play_case(&c, &one.script, raises[raise], 1.1 + below(seed, 10, 30) / 10.0);
        ck_assert_msg(after->makespan_ps <= before->makespan_ps + (LhTime)before->events,
                      "%" G_GUINT64_FORMAT ": %s, %u ranks, %s, %s, %s of %" G_GUINT64_FORMAT
                      ", raise %u: %" G_GINT64_FORMAT " and then %" G_GINT64_FORMAT " ps",
                      seed, c.topology, c.ranks, lh_collective_model_names[c.model],
                      lh_network_model_names[c.network], lh_collective_names[c.kind], c.bytes,
                      raise, before->makespan_ps, after->makespan_ps);
    }
}
END_TEST

/* With zero latencies all time is that of bytes, or independent of links: halving the former
 * leaves the latter. */
START_TEST(times_of_bytes_go_with_rates)
{
    const uint64_t cases = test_share(500);

    for (uint64_t seed = 1; seed <= cases; seed++) {
        const Case c = case_of(seed);
        uint64_t events = 0;
        LhTime t[3];
        Single one;

        /* Excluded: fifo, where a picosecond decides which is first; NCCL's model, where rates
         * decide on the protocol; several nodes, where pieces of several rings that reach a NIC
         * at the same time take turns. */
        if (c.network == LH_NETWORK_FIFO || c.model == LH_COLLECTIVES_NCCL || c.nodes > 1)
            continue;
        single_init(&one, c.kind, first_ranks(c.ranks), c.bytes, 0, 0);
        for (uint32_t i = 0; i < 3; i++) {
            g_autoptr(LhSimResult) result =
                play_case(&c, &one.script, scale_rates_alone, 1.0 / (double)(1 << i));

            t[i] = result->makespan_ps;
            events = result->events;
        }
        ck_assert_msg(ABS((t[2] - t[1]) - 2 * (t[1] - t[0])) <= 4 * (LhTime)events,
                      "%" G_GUINT64_FORMAT ": %s, %u ranks, %s, %s, %s of %" G_GUINT64_FORMAT
                      ": %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT,
                      seed, c.topology, c.ranks, lh_collective_model_names[c.model],
                      lh_network_model_names[c.network], lh_collective_names[c.kind], c.bytes, t[0],
                      t[1], t[2]);
    }
}
END_TEST

LH_TEST_MAIN("sim_measured", alone_they_take_their_times, two_at_once_share,
             latencies_are_of_the_floor, paths_name_the_links, rows_are_folded,
             rings_of_nodes_carry_their_bytes, messages_share_with_them, switches_sum,
             unequal_pieces_are_carried, overuse_is_an_error, no_link_carries_more_than_it_can,
             faster_links_make_nothing_slower, times_of_bytes_go_with_rates)
