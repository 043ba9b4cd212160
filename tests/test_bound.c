/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bottlenecks: critical paths by hand, and the reported bottleneck over schedules, clusters and
 * random clusters, compared with simulating again with every set of resources accelerated.
 */
#include "base/rng.h"
#include "compare/compare.h"
#include "compare/totals.h"
#include "data_files.h"
#include "run_tests.h"
#include "setups.h"
#include "share.h"
#include "sim/cost/provenance.h"
#include "sim/remaining_path.h"
#include "sim_world.h"

#include <math.h>

/* --- paths --------------------------------------------------------------------------------------
 */

/* Steps of a path are contiguous from 0 to the makespan. */
static void
check_path(const LhSimResult *result, const char *what)
{
    LhTime at_ps = 0;

    ck_assert_ptr_nonnull(result->path);
    for (guint i = 0; i < result->path->len; i++) {
        const LhPathStep *step = &g_array_index(result->path, LhPathStep, i);

        ck_assert_msg(step->from_ps == at_ps,
                      "%s: step %u begins at %" G_GINT64_FORMAT
                      " ps, and the one before ends at %" G_GINT64_FORMAT,
                      what, i, step->from_ps, at_ps);
        ck_assert_int_gt(step->to_ps, step->from_ps);
        ck_assert_int_eq(step->kind == LH_STEP_LINKS, step->tiers != 0);
        at_ps = step->to_ps;
    }
    ck_assert_msg(at_ps == result->makespan_ps,
                  "%s: the path ends at %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " ps", what,
                  at_ps, result->makespan_ps);
}

static LhTime
share_of(const GArray *shares, LhPathStepKind kind, uint8_t tiers)
{
    for (guint i = 0; i < shares->len; i++) {
        const LhPathShare *share = &g_array_index(shares, LhPathShare, i);

        if (share->kind == kind && share->tiers == tiers)
            return share->time_ps;
    }
    return 0;
}

typedef struct {
    LhTime compute_ps, nvlink_ps, nic_ps, latency_ps, host_ps;
} Shares;

static void
check_script(Script *script, uint32_t ranks, LhTime launch_ps, const Shares *expected)
{
    g_autoptr(LhSimResult) result = NULL;
    g_autoptr(GArray) shares = NULL;
    World w;

    script_init(&w, script, ranks);
    w.device.kernel_launch_ps = launch_ps;
    w.device.stream_sync_ps = launch_ps;
    w.params.path = true;
    result = world_run(&w);
    check_path(result, "script");
    shares = lh_path_shares(result->path);
    ck_assert_int_eq(share_of(shares, LH_STEP_COMPUTE, 0), expected->compute_ps);
    ck_assert_int_eq(share_of(shares, LH_STEP_LINKS, 1u << LH_TIER_NVLINK), expected->nvlink_ps);
    ck_assert_int_eq(share_of(shares, LH_STEP_LINKS, 1u << LH_TIER_NIC), expected->nic_ps);
    ck_assert_int_eq(share_of(shares, LH_STEP_LATENCY, 0), expected->latency_ps);
    ck_assert_int_eq(share_of(shares, LH_STEP_HOST, 0), expected->host_ps);
    world_clear(&w);
}

#define SEND(on, to, size)                                                                         \
    {                                                                                              \
        .rank = (on), .kind = LH_OP_EXCHANGE, .notes = { { true, (to), 0, (size) } }               \
    }
#define RECEIVE(on, from, size)                                                                    \
    {                                                                                              \
        .rank = (on), .kind = LH_OP_EXCHANGE, .notes = { { false, (from), 0, (size) } }            \
    }

/* NVLink has 300 GB/s and 2 us latency; a NIC adds 12.5 GB/s and 3 us. */
START_TEST(path_follows_what_is_waited_for)
{
    /* Kernel, message to a waiting rank, kernel there; a shorter kernel in parallel. */
    Script message = SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * MS },
                            { .rank = 0,
                              .kind = LH_OP_EXCHANGE,
                              .notes = { { true, 1, 0, 300000000 } },
                              .after = { 1 } },
                            RECEIVE(1, 0, 300000000), /* 1 ms */
                            { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 2 * MS, .after = { 1 } },
                            { .rank = 2, .kind = LH_OP_COMPUTE, .time_ps = 7 * MS });
    /* The receiver is late: the message waits for the receiver's earlier work. */
    Script late = SCRIPT(SEND(0, 1, 300000000), { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = MS },
                         { .rank = 1,
                           .kind = LH_OP_EXCHANGE,
                           .notes = { { false, 0, 0, 300000000 } },
                           .after = { 1 } });
    /* Ops 0 to 3 of one stream: the last is issued after 3 launches and runs 1 us. */
    Script launches = SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US },
                             { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US },
                             { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US },
                             { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US });
    /* A sync: its host continues 10 us after the kernel. */
    Script sync = SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = MS },
                         { .rank = 0, .kind = LH_OP_SYNC },
                         { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = MS });

    check_script(&message, 3, 0,
                 &(Shares){ .compute_ps = 7 * MS, .nvlink_ps = MS, .latency_ps = 2 * US });
    check_script(&late, 2, 0, &(Shares){ .compute_ps = MS, .nvlink_ps = MS, .latency_ps = 2 * US });
    check_script(&launches, 1, 10 * US, &(Shares){ .compute_ps = US, .host_ps = 30 * US });
    check_script(&sync, 1, 10 * US, &(Shares){ .compute_ps = 2 * MS, .host_ps = 10 * US });
}
END_TEST

/* Each op's tail is the longest chain of its dependents, in whatever order these list their
 * dependences. */
START_TEST(tails_are_the_longest_chains)
{
    /* Op 2 waits for 0 and 1, and 3 for 2 alone; the host waits for all of them before op 5. */
    const LhOp ops[] = {
        { .id = 0, .kind = LH_OP_COMPUTE, .stream = 0 },
        { .id = 1, .kind = LH_OP_COMPUTE, .stream = 1 },
        { .id = 2, .kind = LH_OP_COMPUTE, .stream = 2, .after = { 0, 1 }, .after_count = 2 },
        { .id = 3, .kind = LH_OP_COMPUTE, .stream = 3, .after = { 2 }, .after_count = 1 },
        { .id = 4, .kind = LH_OP_SYNC },
        { .id = 5, .kind = LH_OP_COMPUTE, .stream = 1 },
    };
    const LhTime takes_ps[] = { 1, 20, 300, 4000, 0, 50000 };
    const LhTime expected_ps[] = { 54300, 54300, 54000, 50000, 50000, 0 };
    LhRemainingPath *maker = lh_remaining_path_new();
    g_autoptr(GArray) tails = NULL;

    for (uint32_t i = 0; i < G_N_ELEMENTS(ops); i++)
        lh_remaining_path_add(maker, &ops[i], takes_ps[i]);
    tails = lh_remaining_path_end(maker);
    for (uint32_t i = 0; i < G_N_ELEMENTS(ops); i++)
        ck_assert_int_eq(g_array_index(tails, LhTime, i), expected_ps[i]);
}
END_TEST

/* --- what binds ---------------------------------------------------------------------------------
 */

static Case
case_at(const char *cluster, const char *model, const char *seq_length)
{
    g_autofree char *members =
        g_strdup_printf("\"cluster\": \"%s\", \"model\": \"%s\", \"seq_length\": \"%s\"", cluster,
                        model, seq_length);

    return case_of(members);
}

/* Everything that could be accelerated: every set of tiers with traffic, compute, latency,
 * hosts. */
typedef struct {
    LhTime links_ps[1 << LH_TIERS]; /* savings by set; 0 for sets with unused tiers */
    LhTime other_ps[LH_PATH_STEP_KINDS];
} Savings;

static LhTime
saved_by(const Case *c, const LhProgram *program, LhTime makespan_ps, uint8_t kind, uint8_t tiers)
{
    const LhPathShare resource = { .kind = kind, .tiers = tiers };

    return makespan_ps - lh_bottleneck_play_faster(c->setup, program, &resource, NULL);
}

static void
try_everything(const Case *c, const LhCompareRow *row, Savings *s)
{
    const LhTime makespan_ps = row->result->makespan_ps;
    uint8_t used = 0;

    *s = (Savings){ 0 };
    for (unsigned tier = 0; tier < LH_TIERS; tier++)
        if (row->result->link_bytes[tier] > 0)
            used |= (uint8_t)(1u << tier);
    for (unsigned set = 1; set < 1U << LH_TIERS; set++)
        if ((set & ~used) == 0)
            s->links_ps[set] = saved_by(c, row->program, makespan_ps, LH_STEP_LINKS, (uint8_t)set);
    for (unsigned kind = 0; kind < LH_PATH_STEP_KINDS; kind++)
        if (kind != LH_STEP_LINKS)
            s->other_ps[kind] = saved_by(c, row->program, makespan_ps, (uint8_t)kind, 0);
}

/* The largest sum of savings of disjoint sets that make up @set. */
static LhTime
saved_apart(const Savings *s, uint8_t set)
{
    LhTime most = 0;

    for (uint8_t part = (uint8_t)((set - 1) & set); part != 0; part = (uint8_t)((part - 1) & set)) {
        const uint8_t rest = (uint8_t)(set & ~part);

        most = MAX(most, s->links_ps[part] + MAX(s->links_ps[rest], saved_apart(s, rest)));
    }
    return most;
}

/* Asserts that no indivisible set of links saves a twentieth more than the named one. A set is
 * divisible if its parts accelerated one by one save as much. */
static void
check_links(const Savings *s, LhTime saved, const char *what)
{
    for (unsigned set = 1; set < 1U << LH_TIERS; set++)
        ck_assert_msg(s->links_ps[set] <= saved * 20 / 19 + US ||
                          saved_apart(s, (uint8_t)set) >= s->links_ps[set] / 20 * 19,
                      "%s: the named bottleneck saves %g ms, the tiers %x together %g ms", what,
                      (double)saved / (double)MS, set, (double)s->links_ps[set] / (double)MS);
}

/* Asserts that several threads find the same bottleneck as one. */
static void
check_threads(const Case *c, const LhCompareRow *row, const LhBottleneck *bound)
{
    g_autoptr(LhBottleneck) others =
        lh_bottleneck_find(c->setup, row->program, &(LhTask){ .jobs = 3 });

    ck_assert_uint_eq(others->what_ifs->len, bound->what_ifs->len);
    for (guint i = 0; i < bound->what_ifs->len; i++) {
        const LhWhatIf *a = &g_array_index(bound->what_ifs, LhWhatIf, i);
        const LhWhatIf *b = &g_array_index(others->what_ifs, LhWhatIf, i);

        ck_assert_int_eq(a->kind, b->kind);
        ck_assert_int_eq(a->tiers, b->tiers);
        ck_assert_int_eq(a->path_ps, b->path_ps);
        ck_assert_int_eq(a->makespan_ps, b->makespan_ps);
    }
}

/* Asserts that the named bottleneck saves what is reported and that nothing else indivisible saves
 * more, except kernels when most of the path waits for messages. */
static void
check_bound(const Case *c, const LhCompareRow *row, const char *what)
{
    g_autoptr(LhBottleneck) bound =
        lh_bottleneck_find(c->setup, row->program, &(LhTask){ .jobs = 1 });
    const LhWhatIf *named = &g_array_index(bound->what_ifs, LhWhatIf, 0);
    const LhTime saved = bound->makespan_ps - named->makespan_ps;
    const LhTime computes_ps = share_of(bound->shares, LH_STEP_COMPUTE, 0);
    const LhTime hosts_ps = share_of(bound->shares, LH_STEP_HOST, 0);
    const bool messages = bound->makespan_ps - hosts_ps - computes_ps > computes_ps;
    Savings s;

    try_everything(c, row, &s);
    ck_assert_int_eq(bound->makespan_ps, row->result->makespan_ps);
    if ((named->tiers & LH_WITH_LATENCY) == 0)
        ck_assert_int_eq(saved, named->kind == LH_STEP_LINKS ? s.links_ps[named->tiers]
                                                             : s.other_ps[named->kind]);
    ck_assert_msg(!messages || named->kind != LH_STEP_COMPUTE,
                  "%s: most of the path waits for messages, but compute is named", what);
    check_links(&s, saved, what);
    check_threads(c, row, bound);
    for (unsigned kind = 0; kind < LH_PATH_STEP_KINDS; kind++)
        ck_assert_msg(
            s.other_ps[kind] <= saved * 20 / 19 + US || (kind == LH_STEP_COMPUTE && messages),
            "%s: the named bottleneck saves %g ms, %s %g ms", what, (double)saved / (double)MS,
            lh_step_kind_names[kind], (double)s.other_ps[kind] / (double)MS);
}

static void
check_schedule(const Case *c, guint index, const char *what)
{
    const LhSchedule *schedule = g_ptr_array_index(c->setup->schedules, index);
    g_autoptr(LhCompareRow) row = lh_compare_run(c->setup, schedule, &(LhHooks){ .path = true });
    g_autofree char *name = g_strdup_printf("%s on %s", schedule->name, what);

    if (row->result == NULL)
        return;
    check_path(row->result, name);
    check_bound(c, row, name);
}

START_TEST(bound_is_what_saves_most)
{
    static const char *const clusters[] = {
        "hgx-h100:2",       "dgx-a100-80g:1", "azure-nc96-a100:4", "fat-tree-a100:2",
        "bench-platform:2", "dfa-2node:2",    "azure-nc40-h100:8",
    };
    static const char *const models[] = { "llama-3-8b", "tnl-1b" };
    static const char *const lengths[] = { "8K", "64K" };

    for (unsigned i = 0; i < G_N_ELEMENTS(clusters) * 4; i++) {
        const char *cluster = clusters[i / 4];
        g_autofree char *what =
            g_strdup_printf("%s, %s, %s", cluster, models[i % 2], lengths[i / 2 % 2]);
        Case c;

        c = case_at(cluster, models[i % 2], lengths[i / 2 % 2]);
        for (guint k = 0; k < c.setup->schedules->len; k++) {
            if (test_takes(i + k))
                check_schedule(&c, k, what);
        }
        case_clear(&c);
    }
}
END_TEST

/* --- random clusters ----------------------------------------------------------------------------
 */

static uint32_t
pick(uint32_t seed, uint32_t field, uint32_t count)
{
    return (uint32_t)(lh_rng_uniform(seed, field, 0) * count);
}

/* Draws from a few rates, so that links in series are often equally fast. */
static double
pick_rate(uint32_t seed, uint32_t field)
{
    static const double rates[] = { 5e9, 10e9, 10.5e9, 20e9, 40e9, 200e9 };

    return rates[pick(seed, field, G_N_ELEMENTS(rates))];
}

static void
change_topology(Case *c, uint32_t seed)
{
    LhTopology *t = c->setup->topology;
    LhSetup *setup = c->setup;

    t->scale_up = (int)pick(seed, 1, 3);
    t->nvlink.bandwidth = pick_rate(seed, 2);
    t->pcie.bandwidth = pick_rate(seed, 3);
    t->nic.bandwidth = pick_rate(seed, 4);
    t->nic.pair_p2p = pick(seed, 5, 3) == 0 ? pick_rate(seed, 6) : 0;
    t->nic.pair_collective = pick(seed, 13, 2) == 0 ? t->nic.pair_p2p : 0;
    t->nic_overhead_ps = (LhTime)pick(seed, 14, 3) * 5000000;
    t->fabric = t->scale_up == LH_SCALE_UP_SWITCH ? (int)pick(seed, 7, 3) : LH_FABRIC_FAT_TREE;
    t->nodes_per_leaf = 1 + pick(seed, 8, 2);
    t->oversubscription = 1 + pick(seed, 9, 4);
    t->gpus_per_node = 4;
    t->nics_per_node = 1 + pick(seed, 10, 4);
    if (pick(seed, 15, 2) == 0)
        t->above[0] = (LhFabricLevel){ 2 * t->nodes_per_leaf, 1 + pick(seed, 16, 3) };
    ck_assert(lh_network_init(&setup->network, t, 4, setup->network.ranks, NULL, NULL));
    setup->params.gpus_per_node = 4;
    setup->network_model = pick(seed, 11, 4) == 0 ? LH_NETWORK_FIFO : LH_NETWORK_FAIR;
    setup->collectives = (LhCollectiveModel)pick(seed, 12, 5);
}

START_TEST(bound_is_what_saves_most_on_random_clusters)
{
    for (uint32_t seed = 0; seed < test_share(60); seed++) {
        g_autofree char *what = g_strdup_printf("random cluster %u", seed);
        Case c;

        c = case_at("dgx-a100-80g:2", seed % 4 == 0 ? "tnl-1b" : "llama-3-8b",
                    seed % 3 == 0 ? "4K" : "32K");
        change_topology(&c, seed);
        for (guint k = 0; k < 4; k++)
            check_schedule(&c, pick(seed, 20 + k, c.setup->schedules->len), what);
        case_clear(&c);
    }
}
END_TEST

/* Asserts that two ranks have the same results. */
static void
check_same_rank(const LhRankResult *a, const LhRankResult *b)
{
    LhRankResult own = *a, other = *b;

    ck_assert_mem_eq(a->peak, b->peak, sizeof(*a->peak));
    own.peak = other.peak = NULL;
    ck_assert_mem_eq(&own, &other, sizeof(own));
}

/* Recording the critical path changes no result. */
START_TEST(path_leaves_the_run_alone)
{
    for (uint32_t seed = 100; seed < 100 + test_share(30); seed++) {
        const LhHooks hooks = { .path = true };
        g_autoptr(LhCompareRow) without = NULL, with = NULL;
        const LhSchedule *schedule;
        Case c;

        c = case_at("dgx-a100-80g:2", "llama-3-8b", "16K");
        change_topology(&c, seed);
        schedule = g_ptr_array_index(c.setup->schedules, pick(seed, 0, c.setup->schedules->len));
        without = lh_compare_run(c.setup, schedule, NULL);
        with = lh_compare_run(c.setup, schedule, &hooks);
        if (without->result != NULL) {
            ck_assert_ptr_null(without->result->path);
            ck_assert_int_eq(without->result->makespan_ps, with->result->makespan_ps);
            ck_assert_uint_eq(without->result->events, with->result->events);
            for (uint32_t r = 0; r < with->result->ranks_count; r++)
                check_same_rank(&without->result->ranks[r], &with->result->ranks[r]);
        }
        case_clear(&c);
    }
}
END_TEST

/* --- rankings and error bars ------------------------------------------------------------------ */

/* Makes all links of a tier, or (LH_TIERS) kernels, @factor times as fast. */
static void
change_constant(LhSetup *setup, int constant, double factor)
{
    LhLinkClass *const classes[] = { &setup->topology->nvlink, &setup->topology->pcie,
                                     &setup->topology->nic };

    if (constant < (int)G_N_ELEMENTS(classes))
        classes[constant]->bandwidth *= factor;
    for (guint i = 0; constant == LH_TIERS && i < setup->device->kernels->len; i++)
        g_array_index(setup->device->kernels, LhKernelRate, i).rate *= factor;
    ck_assert(lh_network_init(&setup->network, setup->topology, setup->network.nodes,
                              setup->network.ranks, NULL, NULL));
}

static const LhCompareRow *
row_named(const LhComparison *c, const char *name)
{
    for (guint i = 0; i < c->rows->len; i++)
        if (strcmp(((LhCompareRow *)g_ptr_array_index(c->rows, i))->name, name) == 0)
            return g_ptr_array_index(c->rows, i);
    ck_abort_msg("no row is called %s", name);
}

/* Asserts that rows ranked behind the winner outside its error bar stay behind it when a constant
 * is off by its error. */
static void
check_order_stays(const LhComparison *before, const Case *c, const char *what)
{
    const LhCompareRow *first = g_ptr_array_index(before->rows, 0);
    g_autoptr(LhComparison) after = lh_compare(c->setup, NULL, NULL);
    const LhCompareRow *winner = row_named(after, first->name);

    for (guint i = 1; i < before->fit_count; i++) {
        const LhCompareRow *row = g_ptr_array_index(before->rows, i);
        const LhCompareRow *moved = row_named(after, row->name);

        ck_assert_double_ge(row->error, LH_MODEL_ERROR);
        ck_assert_int_eq(row->tied, (double)row->result->makespan_ps <=
                                        (double)first->result->makespan_ps * (1 + row->error));
        ck_assert_msg(row->tied || moved->result->makespan_ps > winner->result->makespan_ps,
                      "%s: %s was ranked behind %s and overtakes it", what, row->name, first->name);
    }
}

START_TEST(rankings_hold_within_the_error)
{
    const double off = lh_provenance_error(LH_PROVENANCE_FITTED);

    for (uint32_t seed = 200; seed < 200 + test_share(30); seed++) {
        const int constants[] = { LH_TIER_NVLINK, LH_TIER_PCIE, LH_TIER_NIC, LH_TIERS };
        const int constant = constants[seed % G_N_ELEMENTS(constants)];
        g_autofree char *what = g_strdup_printf("random cluster %u, constant %d", seed, constant);
        g_autoptr(LhComparison) before = NULL;
        Case c;

        c = case_at("dgx-a100-80g:2", "llama-3-8b", seed % 3 == 0 ? "8K" : "64K");
        change_topology(&c, seed);
        before = lh_compare(c.setup, NULL, NULL);
        change_constant(c.setup, constant, 1 - off);
        check_order_stays(before, &c, what);
        change_constant(c.setup, constant, (1 + off) / (1 - off));
        check_order_stays(before, &c, what);
        case_clear(&c);
    }
}
END_TEST

/* Two rows 3.8 % apart are tied; one half as fast is not. */
START_TEST(close_times_are_not_told_apart)
{
    g_autoptr(LhComparison) comparison = NULL;
    Case c;

    c = case_at("hgx-h100:2", "llama-3-8b", "128K");
    comparison = lh_compare(c.setup, NULL, NULL);
    ck_assert_str_eq(((LhCompareRow *)g_ptr_array_index(comparison->rows, 0))->name, "te-a2a-p2p");
    ck_assert(row_named(comparison, "usp")->tied);
    ck_assert(!row_named(comparison, "ring")->tied);
    case_clear(&c);
}
END_TEST

/* The error of one rank's time is that of its kernels and of the model; a run that waits for a NIC
 * has at least the error of that share. */
START_TEST(error_bars_are_of_what_takes_the_time)
{
    g_autoptr(LhComparison) alone = NULL, spread = NULL;
    const LhCompareRow *row;
    const LhSimResult *r;
    LhTotals totals;
    double nic;
    Case c;

    c = case_at("dgx-a100-80g:1", "llama-3-8b", "8K");
    ck_assert(lh_network_init(&c.setup->network, c.setup->topology, 1, 1, NULL, NULL));
    c.setup->params.ranks = 1;
    alone = lh_compare(c.setup, NULL, NULL);
    row = g_ptr_array_index(alone->rows, 0);
    ck_assert_double_eq_tol(row->time_error.above,
                            hypot(LH_MODEL_ERROR, row->result->compute_error), 1e-3);
    case_clear(&c);
    c = case_at("dgx-a100-80g:2", "llama-3-8b", "8K");
    spread = lh_compare(c.setup, NULL, NULL);
    row = row_named(spread, "ring");
    r = row->result;
    lh_totals(r, &totals);
    nic = (double)totals.idle_ps[LH_IDLE_COMM + LH_TIER_NIC] / (double)r->makespan_ps /
          r->ranks_count;
    ck_assert_double_gt(nic, 0.3);
    ck_assert_double_ge(row->time_error.above,
                        hypot(LH_MODEL_ERROR, nic * lh_provenance_error(LH_PROVENANCE_FITTED)));
    ck_assert_double_le(row->time_error.above,
                        lh_provenance_error(LH_PROVENANCE_FITTED) + LH_MODEL_ERROR);
    case_clear(&c);
}
END_TEST

/* The protocol time of measured collectives may or may not scale with the links. Where links of a
 * node carry such collectives, a saving has an interval; without such times it has none. */
START_TEST(savings_have_intervals)
{
    static const struct {
        const char *cluster, *schedule;
        bool has_interval;
    } cases[] = { { "hgx-h100:1", "ulysses", true },
                  { "hgx-h100:1", "te-p2p", false },
                  { "dgx-a100-40g:1", "ulysses", false } };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Case c = case_at(cases[i].cluster, "llama-3-8b", "16K");
        g_autoptr(LhCompareRow) row =
            lh_compare_run(c.setup, lh_schedule_find(cases[i].schedule, NULL), NULL);
        g_autoptr(LhBottleneck) bound =
            lh_bottleneck_find(c.setup, row->program, &(LhTask){ .jobs = 1 });
        bool has_interval = false;

        for (guint k = 0; k < bound->what_ifs->len; k++) {
            const LhWhatIf *what_if = &g_array_index(bound->what_ifs, LhWhatIf, k);
            const double share = lh_what_if_share(bound, what_if);

            ck_assert(what_if->least_share <= share && share <= what_if->most_share);
            has_interval |= what_if->least_share < share && share < what_if->most_share;
        }
        ck_assert_msg(has_interval == cases[i].has_interval, "%s on %s", cases[i].schedule,
                      cases[i].cluster);
        case_clear(&c);
    }
}
END_TEST

/* The edit of a file for each saving: each path once, paths of one value together, all digits. */
START_TEST(savings_say_what_to_type_in)
{
    const uint8_t nvlink = 1u << LH_TIER_NVLINK, pcie = 1u << LH_TIER_PCIE, nic = 1u << LH_TIER_NIC;
    const struct {
        const char *topology;
        LhWhatIf what_if;
        const char *edit;
    } cases[] = {
        { "hgx-h100",
          { .kind = LH_STEP_LINKS, .tiers = nvlink },
          "`node.scale_up.bandwidth` to 408.1GB/s" },
        { "dgx-a100-80g",
          { .kind = LH_STEP_LINKS, .tiers = pcie | nic },
          "`node.pcie.bandwidth` and `node.nics.bandwidth` to 26.4GB/s" },
        { "pcie-rtx-pro-6000",
          { .kind = LH_STEP_LINKS, .tiers = pcie },
          "`node.pcie.bandwidth` to 52.8GB/s, `node.pcie.levels[0].up` to 46.2GB/s, "
          "`node.pcie.host.per_gpu` to 28.27GB/s" },
        { "pcie-l40s", { .kind = LH_STEP_LATENCY }, "`node.pcie.latency` to 2.727273us" },
        { "pcie-l40s", { .kind = LH_STEP_COMPUTE }, NULL },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhTopology) t = lh_topology_load(cases[i].topology, NULL);
        g_autofree char *edit = lh_what_if_edit(t, &cases[i].what_if);

        ck_assert_pstr_eq(edit, cases[i].edit);
    }
}
END_TEST

LH_TEST_MAIN("bound", path_follows_what_is_waited_for, path_leaves_the_run_alone,
             tails_are_the_longest_chains, bound_is_what_saves_most,
             bound_is_what_saves_most_on_random_clusters, rankings_hold_within_the_error,
             close_times_are_not_told_apart, error_bars_are_of_what_takes_the_time,
             savings_have_intervals, savings_say_what_to_type_in)
