/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator plays schedules; results are compared with independent knowledge: idle fractions of
 * the papers as exact rationals; bytes, flops and memory in closed form; invariants of every
 * schedule on every cluster. test_sim_ops.c has programs written by hand, test_sim_cost.c times of
 * kernels.
 */
#include "run_tests.h"
#include "share.h"
#include "sim_schedules.h"

#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

__extension__ typedef unsigned __int128 Wide;

static const uint32_t some_ranks[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                       12, 13, 14, 15, 16, 24, 25, 32, 33, 64 };

/* 4 h d = 2000: with flops as the only cost a pair takes 2 ps forward and 5 ps backward. */
#define HEADS 4
#define HEAD_DIM 125

static bool
is_named(const char *name, const char *other)
{
    return strcmp(name, other) == 0;
}

/* ---- idle fractions ---- */

typedef struct {
    Wide idle, all; /* the fraction is idle / all */
} Fraction;

/* Pairs of the most loaded rank in one pass: the makespan if flops are the only cost. */
static uint64_t
most_pairs(const char *name, uint64_t ranks, uint64_t n)
{
    const uint64_t diagonal = n * (n + 1) / 2;

    if (is_named(name, "zigzag"))
        return diagonal + (ranks - 1) * n * n / 2;
    if (is_named(name, "striped"))
        return ranks * diagonal;
    if (is_named(name, "dfa-balanced"))
        return ranks / 2 * n * n + diagonal;
    return (ranks - 1) * n * n + diagonal;
}

static Fraction
idle_by_flops(const char *name, uint64_t ranks, uint64_t n)
{
    const uint64_t tokens = ranks * n;
    const Wide all = (Wide)ranks * most_pairs(name, ranks, n);

    return (Fraction){ all - (Wide)tokens * (tokens + 1) / 2, all };
}

static Fraction
idle_by_blocks(const char *name, uint64_t ranks)
{
    if (is_named(name, "zigzag") || is_named(name, "striped"))
        return (Fraction){ 0, 1 };
    if (is_named(name, "dfa-balanced"))
        return (Fraction){ ranks % 2 == 0, ranks + 2 };
    return (Fraction){ ranks - 1, 2 * ranks };
}

static void
check_idle(const LhSimResult *result, Fraction expected, const char *name, LhPass pass)
{
    const Wide makespan = (uint64_t)result->makespan_ps;
    Wide idle = 0;

    for (uint32_t r = 0; r < result->ranks_count; r++)
        idle += makespan - (uint64_t)result->ranks[r].busy_ps;
    ck_assert_msg(idle * expected.all == expected.idle * makespan * result->ranks_count,
                  "%s, %u ranks, pass %s: idle %.9f instead of %.9f", name, result->ranks_count,
                  lh_pass_names[pass - 1], lh_sim_bubble_fraction(result),
                  (double)expected.idle / (double)expected.all);
}

static void
check_idle_of(const char *name, uint32_t ranks, uint64_t n, LhPass pass, bool overlap)
{
    LhProgramParams params = attention(ranks, ranks * n, HEADS, HEADS, HEAD_DIM);
    const Fraction blocks = idle_by_blocks(name, ranks), flops = idle_by_flops(name, ranks, n);
    const LhClosedForms *forms = lh_closed_forms(lh_schedule_find(name, NULL), &params);
    World w;

    params.pass = pass;
    set_option(&params, "no_overlap", !overlap);
    world_init(&w, "bench-platform", schedule(name, &params));
    for (int mode = LH_COST_FLOPS; mode <= LH_COST_UNIT; mode++) {
        const Fraction expected = mode == LH_COST_UNIT ? blocks : flops;
        const double closed =
            mode == LH_COST_UNIT ? forms->idle_unit(&params) : forms->idle_flops(&params);
        g_autoptr(LhSimResult) result = NULL;

        w.params.cost = (LhCostMode)mode;
        result = world_run(&w);
        check_idle(result, expected, name, pass);
        ck_assert_double_eq_tol(closed, (double)expected.idle / (double)expected.all, 1e-14);
    }
    world_clear(&w);
}

START_TEST(sim_idle_fractions_are_exact)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++)
        for (uint32_t k = 0; k < G_N_ELEMENTS(some_ranks); k++) {
            check_idle_of(schedule_names[i], some_ranks[k], 16, LH_PASS_FWD, true);
            if (some_ranks[k] > 16)
                continue;
            check_idle_of(schedule_names[i], some_ranks[k], 16, LH_PASS_BWD, true);
            check_idle_of(schedule_names[i], some_ranks[k], 4, LH_PASS_BOTH, true);
            check_idle_of(schedule_names[i], some_ranks[k], 2, LH_PASS_BOTH, false);
        }
}
END_TEST

/* Limits of the formulas above, and their values at a few points. */
START_TEST(sim_idle_fractions_have_the_known_limits)
{
    for (uint64_t ranks = 1; ranks <= 64; ranks++) {
        const uint64_t n = 1 << 20;
        const double p = (double)ranks;
        const Fraction ring = idle_by_flops("ring", ranks, n),
                       balanced = idle_by_flops("dfa-balanced", ranks, n),
                       zigzag = idle_by_flops("zigzag", ranks, n),
                       striped = idle_by_flops("striped", ranks, n);

        ck_assert_double_eq_tol((double)ring.idle / (double)ring.all, (p - 1) / (2 * p - 1), 1e-6);
        ck_assert_double_eq_tol((double)balanced.idle / (double)balanced.all,
                                ranks % 2 == 0 ? 1 / (p + 1) : 0, 1e-6);
        ck_assert(zigzag.idle == 0);
        ck_assert(striped.idle * (ranks * n + ranks) == striped.all * (ranks - 1));
    }
}
END_TEST

/* The papers' numbers for 8 GPUs: 28 of 64 and 4 of 40 slots idle, speedups 4.5 and 7.2. */
START_TEST(sim_eight_gpus_are_the_papers)
{
    const LhProgramParams params = attention(8, 8 * 64, HEADS, HEADS, HEAD_DIM);
    const struct {
        const char *name;
        LhTime steps, idle;
        double speedup;
    } cases[] = { { "dfa-unbalanced", 8, 28, 4.5 }, { "dfa-balanced", 5, 4, 7.2 } };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int pass = LH_PASS_FWD; pass <= LH_PASS_BWD; pass++) {
            LhProgramParams one = params;
            g_autoptr(LhSimResult) result = NULL;
            LhTime idle = 0, busy = 0;
            World w;

            one.pass = (LhPass)pass;
            world_init(&w, "bench-platform", schedule(cases[i].name, &one));
            w.params.cost = LH_COST_UNIT;
            result = world_run(&w);
            for (uint32_t r = 0; r < 8; r++) {
                idle += result->ranks[r].idle_ps[LH_IDLE_IMBALANCE];
                busy += result->ranks[r].busy_ps;
            }
            ck_assert_int_eq(result->makespan_ps, cases[i].steps * LH_PS_PER_S);
            ck_assert_int_eq(idle, cases[i].idle * LH_PS_PER_S);
            ck_assert_double_eq_tol((double)busy / (double)result->makespan_ps, cases[i].speedup,
                                    1e-14);
            world_clear(&w);
        }
}
END_TEST

/* ---- bytes, flops, memory ---- */

/* The formulas of the schedules, in bytes; see docs/reference/schedules.md. */
static uint64_t
expected_bytes(const char *name, const LhProgramParams *p, uint64_t r)
{
    const LhAttention *a = &p->attention;
    const uint64_t ranks = p->ranks, n = a->seq_length / ranks, half = ranks / 2;
    const uint64_t q = n * a->heads * a->head_dim * 2, kv = 2 * n * a->groups * a->head_dim * 2;
    const uint64_t s = 4 * n * a->heads;
    const uint64_t served = ranks - 1 - r;
    const uint64_t helped = r > half ? r - half : 0;
    const uint64_t helper_steps = ranks % 2 == 0 ? half - 1 : half;
    const uint64_t helps = helper_steps > r ? helper_steps - r : 0;
    const uint64_t dead = option_of(p, "published_code") != 0 && r + 2 <= half ? 1 : 0;
    uint64_t fwd, bwd;

    if (is_named(name, "dfa-unbalanced")) {
        fwd = served * kv;
        bwd = (ranks - 1) * kv;
    } else if (is_named(name, "dfa-balanced")) {
        fwd = kv * (MIN(half, served) + dead) + q * helped + (q + 2 * s) * helps;
        bwd =
            kv * (MIN(half, served) + dead) + (3 * q + s) * helped + q * helps + kv * MIN(r, half);
    } else {
        fwd = (ranks - 1) * kv;
        bwd = (ranks - 1) * kv + ranks * 2 * kv; /* fp32 gradients, one hop more */
    }
    return (p->pass & LH_PASS_FWD ? fwd : 0) + (p->pass & LH_PASS_BWD ? bwd : 0);
}

static void
sum_bytes(void *data, const LhTimelineRecord *record)
{
    uint64_t *bytes = data;

    bytes[record->rank] += record->bytes;
}

static void
check_counts(const char *name, const LhProgramParams *params)
{
    const LhClosedForms *closed = lh_closed_forms(lh_schedule_find(name, NULL), params);
    g_autofree uint64_t *recorded = g_new0(uint64_t, params->ranks);
    g_autoptr(LhSimResult) result = NULL;
    World w;

    world_init(&w, "dgx-a100-80g", schedule(name, params));
    w.params.timeline = sum_bytes;
    w.params.timeline_data = recorded;
    result = world_run(&w);
    for (uint32_t r = 0; r < params->ranks; r++) {
        const LhRankResult *rank = &result->ranks[r];
        uint64_t memory = 0;

        ck_assert_uint_eq(rank->bytes_sent, expected_bytes(name, params, r));
        ck_assert_uint_eq(rank->bytes_sent, closed->bytes_sent(params, r));
        ck_assert_uint_eq(rank->bytes_sent, recorded[r]);
        ck_assert_uint_eq(rank->flops, closed->flops(params, r));
        ck_assert_uint_eq(rank->peak_bytes, closed->peak_bytes(params, r));
        for (uint32_t kind = 0; kind < LH_TENSOR_KINDS; kind++)
            memory += rank->peak->by_tensor[kind];
        ck_assert_uint_eq(memory, rank->peak_bytes);
        ck_assert_int_le(rank->peak_at_ps, result->makespan_ps);
    }
    world_clear(&w);
}

START_TEST(sim_counts_equal_the_closed_forms)
{
    static const uint32_t ranks[] = { 2, 3, 4, 7, 8, 16, 32 };
    static const uint32_t groups[] = { 8, 2 };

    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++)
        for (uint32_t k = 0; k < G_N_ELEMENTS(ranks); k++)
            for (uint32_t g = 0; g < G_N_ELEMENTS(groups); g++)
                for (int pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
                    LhProgramParams params = attention(ranks[k], ranks[k] * 128, 8, groups[g], 64);

                    params.pass = (LhPass)pass;
                    check_counts(schedule_names[i], &params);
                    if (!is_named(schedule_names[i], "dfa-balanced") || ranks[k] % 2 != 0)
                        continue;
                    set_option(&params, "published_code", 1);
                    check_counts(schedule_names[i], &params);
                }
}
END_TEST

/* Bytes that leave a node cross one link up and one link down of every tier on their route. */
START_TEST(sim_links_carry_what_ranks_send)
{
    const LhProgramParams params = attention(16, 16 * 256, 8, 8, 64);

    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++) {
        g_autoptr(LhSimResult) result = NULL;
        uint64_t inside = 0, between = 0;
        World w;

        world_init(&w, "dgx-a100-80g", schedule(schedule_names[i], &params));
        result = world_run(&w);
        for (uint32_t r = 0; r < 16; r++) {
            inside += result->ranks[r].bytes_by_tier[LH_TIER_NVLINK];
            between += result->ranks[r].bytes_by_tier[LH_TIER_NIC];
        }
        ck_assert_uint_gt(between, 0);
        ck_assert(result->link_bytes[LH_TIER_NVLINK] == 2 * inside);
        ck_assert(result->link_bytes[LH_TIER_PCIE] == 2 * between);
        ck_assert(result->link_bytes[LH_TIER_NIC] == 2 * between);
        ck_assert_double_le(result->busiest_link_utilisation, 1 + 1e-9);
        ck_assert_double_gt(result->busiest_link_utilisation, 0);
        for (uint32_t k = 1; k < result->busy_links_count; k++) {
            const LhLinkUse *before = &result->busy_links[k - 1], *use = &result->busy_links[k];

            ck_assert(before->used > use->used ||
                      (before->used == use->used && before->link < use->link));
        }
        world_clear(&w);
    }
}
END_TEST

/* ---- faults, stragglers, jitter ---- */

START_TEST(sim_slow_links_slow_and_failed_links_fail)
{
    const LhProgramParams params = attention(16, 16 * 1024, 32, 32, 128);

    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++) {
        LhTime makespans[2];
        World w;

        for (uint32_t slow = 0; slow < 2; slow++) {
            g_autoptr(LhSimResult) result = NULL;

            world_init(&w, "dgx-a100-80g", schedule(schedule_names[i], &params));
            if (slow)
                add_fault(&w, LH_TIER_NIC, 1, 0.25);
            result = world_run(&w);
            makespans[slow] = result->makespan_ps;
            world_clear(&w);
        }
        ck_assert_int_gt(makespans[1], makespans[0]);
        world_init(&w, "dgx-a100-80g", schedule(schedule_names[i], &params));
        add_fault(&w, LH_TIER_NIC, 1, 0);
        check_failure(
            &w, LH_ERROR_RUNTIME,
            (const char *[]){ "cannot send to rank", "nic ", "node 1", "has failed", NULL });
    }
}
END_TEST

START_TEST(sim_stragglers_slow_their_rank_alone)
{
    const LhProgramParams params = attention(4, 4 * 1024, 32, 32, 128);

    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++) {
        g_autoptr(GArray) stragglers = g_array_new(FALSE, FALSE, sizeof(LhStraggler));
        const LhStraggler straggler = { 2, 2 };
        g_autoptr(LhSimResult) before = NULL, after = NULL;
        World w;

        g_array_append_val(stragglers, straggler);
        world_init(&w, "bench-platform", schedule(schedule_names[i], &params));
        before = world_run(&w);
        w.params.stragglers = stragglers;
        after = world_run(&w);
        for (uint32_t r = 0; r < 4; r++)
            ck_assert_int_eq(after->ranks[r].busy_ps, before->ranks[r].busy_ps * (r == 2 ? 2 : 1));
        ck_assert_int_gt(after->makespan_ps, before->makespan_ps);
        world_clear(&w);
    }
}
END_TEST

static void
write_record(void *data, const LhTimelineRecord *t)
{
    g_string_append_printf(data,
                           "%u %u %u %u %u %u %u %u %" G_GINT64_FORMAT " %" G_GINT64_FORMAT
                           " %" G_GINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n",
                           t->rank, t->op, t->kind, t->stream, t->phase, t->tier, t->step,
                           (unsigned)t->kernel, t->issued_ps, t->start_ps, t->end_ps, t->bytes,
                           t->flops);
}

static char *
timeline(const char *name, LhNetworkModel model, double jitter, uint64_t seed)
{
    const LhProgramParams params = attention(12, 12 * 512, 8, 2, 64);
    GString *text = g_string_new(NULL);
    g_autoptr(LhSimResult) result = NULL;
    World w;

    world_init(&w, "fat-tree-a100", schedule(name, &params));
    w.topology.gpus_per_node = 2;
    w.topology.nics_per_node = 1;
    w.topology.nodes_per_leaf = 2;
    w.params.network_model = model;
    w.params.jitter = jitter;
    w.params.seed = seed;
    w.params.timeline = write_record;
    w.params.timeline_data = text;
    result = world_run(&w);
    g_string_append_printf(text, "%" G_GINT64_FORMAT " %" G_GUINT64_FORMAT " %.17g\n",
                           result->makespan_ps, result->events, result->busiest_link_utilisation);
    world_clear(&w);
    return g_string_free(text, FALSE);
}

START_TEST(sim_is_deterministic_in_its_seed)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++)
        for (int model = LH_NETWORK_FAIR; model <= LH_NETWORK_FIFO; model++) {
            const char *name = schedule_names[i];
            const LhNetworkModel m = (LhNetworkModel)model;
            g_autofree char *plain = timeline(name, m, 0, 1);
            g_autofree char *again = timeline(name, m, 0, 2); /* without jitter, seeds have no
                                                               * effect */
            g_autofree char *one = timeline(name, m, 0.1, 1);
            g_autofree char *same = timeline(name, m, 0.1, 1);
            g_autofree char *other = timeline(name, m, 0.1, 2);

            ck_assert_str_eq(plain, again);
            ck_assert_str_eq(one, same);
            ck_assert_str_ne(one, other);
            ck_assert_str_ne(one, plain);
        }
}
END_TEST

START_TEST(sim_jitter_stays_in_its_bounds)
{
    const LhProgramParams params = attention(8, 8 * 1024, 32, 32, 128);
    g_autoptr(LhSimResult) before = NULL, after = NULL;
    World w;

    world_init(&w, "bench-platform", schedule("zigzag", &params));
    before = world_run(&w);
    w.params.jitter = 0.2;
    w.params.seed = 7;
    after = world_run(&w);
    for (uint32_t r = 0; r < 8; r++) {
        const double ratio = (double)after->ranks[r].busy_ps / (double)before->ranks[r].busy_ps;

        ck_assert_double_gt(ratio, 0.8);
        ck_assert_double_lt(ratio, 1.2);
        ck_assert_double_gt(fabs(ratio - 1), 1e-6);
    }
    world_clear(&w);
}
END_TEST

/* ---- invariants of every schedule on every cluster ---- */

typedef struct {
    const char *topology;
    uint32_t ranks;
} Cluster;

static const Cluster some_clusters[] = {
    { "dgx-a100-80g", 16 },   { "dfa-2node", 16 },      { "azure-nc96-a100", 8 },
    { "azure-nc40-h100", 6 }, { "bench-platform", 24 }, { "fat-tree-a100", 40 },
    { "hgx-h100", 12 },       { "nvl72", 8 },
};

static LhLinkClass *
link_class(World *w, uint32_t index)
{
    LhLinkClass *const classes[] = { &w->topology.nvlink, &w->topology.pcie, &w->topology.nic };

    return index < G_N_ELEMENTS(classes) ? classes[index] : NULL;
}

#define CHANGES 8

/* @change: 0 none; 1, 2, 3 double a bandwidth; 4, 5, 6 halve a latency; 7 doubles the limit of a
 * pair of GPUs; 8 all of these everywhere. */
static LhTime
makespan_with(const Cluster *cluster, const char *name, LhNetworkModel model, uint32_t change)
{
    const LhProgramParams params = attention(cluster->ranks, cluster->ranks * 4096, 32, 8, 128);
    g_autoptr(LhSimResult) result = NULL;
    World w;

    world_init(&w, cluster->topology, schedule(name, &params));
    for (uint32_t i = 0; link_class(&w, i) != NULL; i++) {
        if (change == i + 1 || change == CHANGES)
            link_class(&w, i)->bandwidth *= 2;
        if (change == i + 4 || change == CHANGES)
            link_class(&w, i)->latency_ps /= 2;
    }
    if (change >= 7) {
        w.topology.nic.pair_p2p *= 2;
        w.topology.nic.pair_collective *= 2;
    }
    w.params.network_model = model;
    result = world_run(&w);
    world_clear(&w);
    return result->makespan_ps;
}

/*
 * Messages that do not share links never lose by a better link. Shared links have anomalies as
 * Graham found for scheduling (1969): a message that ends sooner lets the next one start sooner,
 * which takes bandwidth from a more important one. They are small.
 */
#define ANOMALY_MAX 0.005

static void
check_better_links(const Cluster *cluster, const char *name, LhNetworkModel model)
{
    const LhTime base = makespan_with(cluster, name, model, 0);
    const double allowed = model == LH_NETWORK_FAIR ? ANOMALY_MAX : 0;

    for (uint32_t change = 1; change <= CHANGES; change++) {
        const LhTime changed = makespan_with(cluster, name, model, change);

        ck_assert_msg((double)changed <= (double)base * (1 + allowed),
                      "%s, %u x %s, %s: better links (%u) take %" G_GINT64_FORMAT
                      " ps more of %" G_GINT64_FORMAT,
                      name, cluster->ranks, cluster->topology, lh_network_model_names[model],
                      change, changed - base, base);
    }
}

START_TEST(sim_better_links_are_never_slower)
{
    for (uint32_t c = 0; c < G_N_ELEMENTS(some_clusters); c++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++)
            for (int model = LH_NETWORK_FAIR; model <= LH_NETWORK_ALPHA_BETA; model++) {
                if (test_takes_of(c + i + (uint32_t)model, 3))
                    check_better_links(&some_clusters[c], schedule_names[i], (LhNetworkModel)model);
            }
}
END_TEST

/* Lower bound of the bytes that cross a tier's links upwards from one place. */
static LhTime
least_time(double bytes, double bandwidth)
{
    return bandwidth > 0 ? (LhTime)(bytes / bandwidth * 1e12 * (1 - 1e-9)) : 0;
}

START_TEST(sim_nothing_beats_the_roofline)
{
    for (uint32_t c = 0; c < G_N_ELEMENTS(some_clusters); c++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++) {
            const uint32_t ranks = some_clusters[c].ranks;
            const LhProgramParams params = attention(ranks, ranks * 1024, 32, 8, 128);
            g_autoptr(LhSimResult) result = NULL;
            double leaving = 0;
            World w;

            world_init(&w, some_clusters[c].topology, schedule(schedule_names[i], &params));
            result = world_run(&w);
            for (uint32_t r = 0; r < ranks; r++) {
                const LhRankResult *rank = &result->ranks[r];
                uint32_t launches;

                ck_assert_int_ge(rank->busy_ps, kernel_time(&w, r, &launches));
                ck_assert_int_ge(result->makespan_ps, rank->busy_ps);
                ck_assert_int_ge(result->makespan_ps,
                                 least_time((double)rank->flops, w.device.matrix_rate));
                ck_assert_int_ge(result->makespan_ps,
                                 least_time((double)rank->bytes_by_tier[LH_TIER_NVLINK],
                                            w.topology.nvlink.bandwidth));
                leaving += (double)(rank->bytes_by_tier[LH_TIER_NIC] +
                                    rank->bytes_by_tier[LH_TIER_FABRIC]);
                if ((r + 1) % w.topology.gpus_per_node != 0 && r + 1 < ranks)
                    continue;
                ck_assert_int_ge(result->makespan_ps,
                                 least_time(leaving, (double)w.topology.nics_per_node *
                                                         w.topology.nic.bandwidth));
                leaving = 0;
            }
            world_clear(&w);
        }
}
END_TEST

/* ---- memory of the simulator ---- */

#define MANY_RANKS (SANITIZED ? 16384 : 65536)

/* A sanitizer's own memory is excluded from the claim. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif
#define MANY_STEPS (SANITIZED ? 8 : 64)
#define SANITIZER_FACTOR (SANITIZED ? 2 : 1)

static long
peak_rss_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* The first steps of a ring over 65,536 ranks; the whole program has 4 billion ops. */
static void
play_many_ranks(void)
{
    LhProgramParams params = attention(MANY_RANKS, MANY_RANKS * 16, 1, 1, 8);
    g_autoptr(LhSimResult) result = NULL;
    World w;

    params.pass = LH_PASS_FWD;
    world_init(&w, "bench-platform", schedule("ring", &params));
    w.params.steps_max = MANY_STEPS;
    result = world_run(&w);
    ck_assert_uint_eq(result->ranks[100].bytes_sent, MANY_STEPS * 2 * 16 * 8 * 2);
    world_clear(&w);
}

/* 4 KiB per rank plus 20 MB, which includes the process and its libraries. */
START_TEST(sim_memory_grows_with_ranks_not_ops)
{
    const pid_t child = fork();
    int status = 1;

    if (child == 0) {
        play_many_ranks();
        _exit(peak_rss_kib() <= SANITIZER_FACTOR * (MANY_RANKS * 4 + 20000) ? 0 : 1);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

LH_TEST_MAIN("sim", sim_idle_fractions_are_exact, sim_idle_fractions_have_the_known_limits,
             sim_eight_gpus_are_the_papers, sim_counts_equal_the_closed_forms,
             sim_links_carry_what_ranks_send, sim_slow_links_slow_and_failed_links_fail,
             sim_stragglers_slow_their_rank_alone, sim_is_deterministic_in_its_seed,
             sim_jitter_stays_in_its_bounds, sim_better_links_are_never_slower,
             sim_nothing_beats_the_roofline, sim_memory_grows_with_ranks_not_ops)
