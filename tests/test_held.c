/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checking logs against predictions: logs generated from predictions with one lever changed and
 * noise, where the lever must be named; without a single cause none may be named.
 */
#include "base/rng.h"
#include "collective_check/log_check.h"
#include "run_tests.h"
#include "share.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CASES 200
#define NOISE 0.03
#define SLOWEST 0.2 /* smallest factor of a lever */
#define FACTOR_OFF 0.15

static const struct {
    const char *cluster;
    uint32_t nodes;
} clusters[] = {
    { "hgx-h100", 1 },     { "hgx-h100", 4 },  { "hgx-h100", 2 },      { "dgx-a100-80g", 1 },
    { "dgx-a100-80g", 2 }, { "hgx-b200", 1 },  { "fat-tree-a100", 4 }, { "pcie-l40s", 1 },
    { "hgx-h800", 4 },     { "dfa-2node", 2 }, { "gb300-nvl72", 1 },   { "azure-nc96-a100", 1 },
    { "hgx-h200", 3 },     { "hgx-a800", 2 },
};

typedef struct {
    LhScenario *scenario;
    LhNcclTest *single;
    char *cluster;
} Made;

static Made
make_single(const char *cluster, uint32_t nodes, const char *op)
{
    Made m = { .scenario = lh_scenario_new(), .cluster = g_strdup_printf("%s:%u", cluster, nodes) };
    g_autoptr(GError) error = NULL;

    lh_scenario_replace(m.scenario, "cluster", m.cluster);
    lh_scenario_replace(m.scenario, "collectives", "nccl");
    m.single = lh_nccl_test_new(m.scenario, lh_nccl_test_op_find(op, NULL),
                                (LhNcclTestPlace){ 0, 0 }, &error);
    ck_assert_msg(m.single != NULL, "%s: %s", m.cluster, error != NULL ? error->message : "");
    return m;
}

static void
made_clear(Made *m)
{
    lh_nccl_test_free(m->single);
    lh_scenario_free(m->scenario);
    g_free(m->cluster);
}

/* Time of a size on a topology other than the cluster's. */
static double
seconds_on(const LhNcclTest *s, const LhTopology *topology, uint64_t bytes)
{
    LhNetwork network;
    double seconds;

    ck_assert(lh_network_init(&network, topology, s->setup->network.nodes, s->setup->network.ranks,
                              NULL, NULL));
    ck_assert(lh_nccl_test_seconds(s, &network, bytes, &seconds, NULL));
    return seconds;
}

/* Approximately normal with mean 1 and deviation @deviation. */
static double
noise(uint64_t seed, uint64_t a, double deviation)
{
    double sum = 0;

    for (uint64_t i = 0; i < 12; i++)
        sum += lh_rng_uniform(seed, a, i);
    return 1 + deviation * (sum - 6);
}

static void
begin_log(const LhNcclTest *s, GString *log)
{
    const LhNetwork *n = &s->setup->network;

    g_string_append_printf(log, "# %s_perf\n", s->op->name);
    for (uint64_t r = 0; r < s->ranks; r++)
        g_string_append_printf(log,
                               "#  Rank %2" G_GUINT64_FORMAT " Group  0 Pid 1 on host%u device 0\n",
                               r, (unsigned)(r / n->gpus_per_host));
    g_string_append(log, "# size count type redop root time algbw busbw #wrong\n");
}

static void
log_row(const LhNcclTest *s, uint64_t bytes, double seconds, GString *log)
{
    const double gbps = (double)bytes / seconds / 1e9;

    g_string_append_printf(log, "%" G_GUINT64_FORMAT " 1 float sum -1 %.3f %.4f %.4f 0\n", bytes,
                           1e6 * seconds, gbps, gbps * lh_nccl_test_bus_share(s->op, s->ranks));
}

/* A log of sizes from @bytes_min on. */
static LhLogCheck *
hold_from(const Made *m, const GString *log, uint64_t bytes_min)
{
    g_autofree char *path = NULL;
    const int file = g_file_open_tmp("held-XXXXXX", &path, NULL);
    g_autoptr(GPtrArray) logs = g_ptr_array_new();
    const LhLogCheckQuery query = { .scenario = m->scenario,
                                    .logs = logs,
                                    .bytes_min = bytes_min,
                                    .bytes_max = LH_NCCL_TEST_BYTES_MAX };
    LhLogCheck *held;

    ck_assert(file >= 0);
    close(file);
    ck_assert(g_file_set_contents(path, log->str, (gssize)log->len, NULL));
    g_ptr_array_add(logs, path);
    held = lh_log_check_new(&query, NULL);
    ck_assert(held != NULL);
    remove(path);
    return held;
}

static LhLogCheck *
hold(const Made *m, const GString *log)
{
    return hold_from(m, log, 1);
}

/* Sizes from 1 KiB to 1 GiB. */
#define ROWS 11

static uint64_t
bytes_of(const LhNcclTest *s, int row)
{
    return lh_nccl_test_bytes(s->op, s->ranks, UINT64_C(1024) << (2 * row));
}

/* The cause for the lever, at about this factor; NULL if it is not named. */
static const LhLogCheckCause *
named(const LhLogCheck *held, const LhLever *lever, double factor)
{
    for (guint i = 0; i < held->causes->len; i++) {
        const LhLogCheckCause *cause = &g_array_index(held->causes, LhLogCheckCause, i);

        if (cause->lever == lever && fabs(log(cause->factor / factor)) < FACTOR_OFF)
            return cause;
    }
    return NULL;
}

/* NVLS is not named for deviations unrelated to it. */
static void
check_ways(const LhLogCheck *held, const LhNcclTestOp *op)
{
    for (guint i = 0; i < held->causes->len; i++) {
        const LhLogCheckCause *cause = &g_array_index(held->causes, LhLogCheckCause, i);

        ck_assert(op->kind == LH_COLL_ALL_REDUCE ||
                  g_strcmp0(cause->way, "NCCL_NVLS_ENABLE=0") != 0);
    }
}

typedef struct {
    guint outside, named, unnoticed;
} Tally;

/* One changed lever, for one operation on one cluster. */
static void
attack(uint64_t seed, Tally *tally)
{
    const size_t where = (size_t)(lh_rng_bits(seed, 0, 0) % G_N_ELEMENTS(clusters));
    const LhNcclTestOp *op = &lh_nccl_test_ops[lh_rng_bits(seed, 0, 1) % (LH_NCCL_TEST_SENDS + 1)];
    Made m = make_single(clusters[where].cluster, clusters[where].nodes, op->name);
    g_autoptr(GPtrArray) levers = lh_topology_levers(m.single->setup->topology);
    const LhLever *lever = levers->pdata[lh_rng_bits(seed, 0, 2) % levers->len];
    const double factor = SLOWEST + (1 - SLOWEST) * lh_rng_uniform(seed, 0, 3);
    LhTopology turned = *m.single->setup->topology;
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(LhLogCheck) held = NULL;

    lh_lever_scale(&turned, lever, factor);
    begin_log(m.single, log);
    for (int row = 0; row < ROWS; row++) {
        const uint64_t bytes = bytes_of(m.single, row);

        if (bytes > 0)
            log_row(m.single, bytes,
                    seconds_on(m.single, &turned, bytes) * noise(seed, (uint64_t)row + 1, NOISE),
                    log);
    }
    held = hold(&m, log);
    check_ways(held, op);
    if (held->inside == held->logged) {
        ck_assert_uint_eq(held->causes->len, 0);
        tally->unnoticed++;
    } else {
        tally->outside++;
        tally->named += named(held, lever, factor) != NULL;
    }
    made_clear(&m);
}

START_TEST(a_lever_that_was_turned_is_named)
{
    Tally tally = { 0 };

    for (uint64_t seed = 0; seed < CASES; seed += test_every())
        attack(seed, &tally);
    ck_assert_msg(20 * tally.named >= 19 * tally.outside,
                  "%u named of %u; %u were within the interval", tally.named, tally.outside,
                  tally.unnoticed);
}
END_TEST

/* A log of @m whose times are the predictions times @times of each row. */
static LhLogCheck *
hold_times_from(const Made *m, const double *times, uint64_t bytes_min)
{
    g_autoptr(GString) log = g_string_new(NULL);
    LhLogCheck *held;

    begin_log(m->single, log);
    for (int row = 0; row < ROWS; row++) {
        const uint64_t bytes = bytes_of(m->single, row);
        LhNcclTestTime time;

        if (bytes == 0)
            continue;
        ck_assert(lh_nccl_test_time(m->single, bytes, &time, NULL));
        log_row(m->single, bytes, time.seconds * times[row], log);
    }
    held = hold_from(m, log, bytes_min);
    return held;
}

static LhLogCheck *
hold_times(const Made *m, const double *times)
{
    return hold_times_from(m, times, 1);
}

/* Rows with independent random errors, up to a factor of three either way, have no lever as a
 * cause. */
START_TEST(chance_is_not_named)
{
    guint wrong = 0, cases = 0;

    for (uint64_t seed = 0; seed < CASES; seed += test_every(), cases++) {
        const size_t where = (size_t)(seed % G_N_ELEMENTS(clusters));
        Made m = make_single(clusters[where].cluster, clusters[where].nodes, "all_reduce");
        double times[ROWS];
        g_autoptr(LhLogCheck) held = NULL;

        for (int row = 0; row < ROWS; row++)
            times[row] = pow(3, 2 * lh_rng_uniform(seed, 7, (uint64_t)row) - 1);
        held = hold_times(&m, times);
        wrong += held->causes->len > 0;
        made_clear(&m);
    }
    ck_assert_uint_le(50 * wrong, cases);
}
END_TEST

START_TEST(sound_logs_are_inside)
{
    for (uint64_t seed = 0; seed < G_N_ELEMENTS(clusters); seed++) {
        Made m = make_single(clusters[seed].cluster, clusters[seed].nodes, "all_gather");
        double times[ROWS];
        g_autoptr(LhLogCheck) held = NULL;

        for (int row = 0; row < ROWS; row++)
            times[row] = noise(seed, (uint64_t)row, NOISE);
        held = hold_times(&m, times);
        ck_assert_uint_eq(held->inside, held->logged);
        ck_assert_uint_eq(held->causes->len, 0);
        made_clear(&m);
    }
}
END_TEST

/* One slow row is reported, and no lever explains it. */
START_TEST(one_slow_row_is_seen)
{
    for (int slow = 0; slow < ROWS; slow++) {
        Made m = make_single("hgx-h100", 1, "reduce_scatter");
        double times[ROWS];
        g_autoptr(LhLogCheck) held = NULL;

        for (int row = 0; row < ROWS; row++)
            times[row] = row == slow ? 2 : 1;
        held = hold_times(&m, times);
        ck_assert_uint_eq(held->inside, ROWS - 1);
        ck_assert_uint_eq(held->causes->len, 0);
        made_clear(&m);
    }
}
END_TEST

/* A lever is not named if it reduces the errors but leaves most rows outside their intervals, nor
 * if it brings all inside when few were outside. */
START_TEST(half_a_reason_is_none)
{
    Made m = make_single("hgx-h100", 1, "all_gather");
    double times[ROWS];
    g_autoptr(LhLogCheck) held = NULL, few = NULL;

    for (int row = 0; row < ROWS; row++)
        times[row] = row % 2 == 0 ? 4 : 6;
    held = hold_times_from(&m, times, 64 << 20);
    ck_assert_uint_eq(held->logged, 3);
    ck_assert_uint_eq(held->inside, 0);
    ck_assert_uint_eq(held->causes->len, 0);
    for (int row = 0; row < ROWS; row++)
        times[row] = row == ROWS - 1 ? 1.22 : 1.05;
    few = hold_times_from(&m, times, 64 << 20);
    ck_assert_uint_eq(few->inside, 2);
    ck_assert_uint_eq(few->causes->len, 0);
    made_clear(&m);
}
END_TEST

static bool
names_way(const LhLogCheck *held, const char *way)
{
    return held->causes->len == 1 &&
           g_strcmp0(g_array_index(held->causes, LhLogCheckCause, 0).way, way) == 0;
}

/* Rings instead of NVLS: twice the time of a reduce-scatter, except for one floor. If that takes as
 * long, NVLS cannot be the cause. */
START_TEST(nvls_that_is_off_is_named)
{
    Made m = make_single("hgx-h100", 1, "all_reduce");
    Made half = make_single("hgx-h100", 1, "reduce_scatter");
    Made gather = make_single("hgx-h100", 1, "all_gather");
    g_autoptr(GString) log = g_string_new(NULL), twice = g_string_new(NULL);
    g_autoptr(LhLogCheck) held = NULL, other = NULL;
    LhNcclTestTime least, first;

    ck_assert(lh_nccl_test_is_nvls(m.single) && !lh_nccl_test_is_nvls(half.single));
    ck_assert(lh_nccl_test_time(half.single, 1024, &least, NULL));
    ck_assert(lh_nccl_test_time(gather.single, 1024, &first, NULL));
    begin_log(m.single, log);
    begin_log(half.single, twice);
    for (int row = 0; row < ROWS; row++) {
        LhNcclTestTime time, whole;

        ck_assert(lh_nccl_test_time(half.single, bytes_of(m.single, row), &time, NULL));
        ck_assert(lh_nccl_test_time(m.single, bytes_of(m.single, row), &whole, NULL));
        log_row(m.single, bytes_of(m.single, row),
                fmax(whole.seconds, 2 * time.seconds - least.seconds), log);
        ck_assert(lh_nccl_test_time(gather.single, bytes_of(m.single, row), &whole, NULL));
        log_row(half.single, bytes_of(m.single, row), time.seconds + whole.seconds - first.seconds,
                twice);
    }
    held = hold(&m, log);
    other = hold(&half, twice);
    ck_assert(held->inside < held->logged);
    ck_assert_msg(names_way(held, "NCCL_NVLS_ENABLE=0"), "%u causes", held->causes->len);
    check_ways(other, half.single->op);
    made_clear(&m);
    made_clear(&half);
    made_clear(&gather);
}
END_TEST

/* Messages through host memory: PCIe bandwidth. A much slower NVLink looks the same, except in
 * latencies. */
START_TEST(messages_through_memory_are_named)
{
    Made m = make_single("hgx-h100", 1, "all_gather");
    LhTopology t = *m.single->setup->topology;
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(LhLogCheck) held = NULL;
    bool found = false;

    t.nvlink.bandwidth = t.pcie.bandwidth;
    t.nvlink.latency_ps = t.pcie.latency_ps;
    begin_log(m.single, log);
    for (int row = 0; row < ROWS; row++)
        log_row(m.single, bytes_of(m.single, row),
                seconds_on(m.single, &t, bytes_of(m.single, row)), log);
    held = hold(&m, log);
    for (guint i = 0; i < held->causes->len; i++)
        found |= g_strcmp0(g_array_index(held->causes, LhLogCheckCause, i).way,
                           "NCCL_P2P_DISABLE=1") == 0;
    ck_assert(found);
    made_clear(&m);
}
END_TEST

/* NICs of 48 GB/s behind PCIe of 48 GB/s: either may be slow; or NVLink, if it has no more
 * bandwidth than all of them. */
START_TEST(what_explains_equally_well_is_named)
{
    static const char *const paths[] = { "node.pcie.bandwidth", "node.nics.bandwidth",
                                         "node.scale_up.bandwidth", NULL };
    Made m = make_single("hgx-h100", 4, "all_gather");
    double times[ROWS];
    LhTopology turned = *m.single->setup->topology;
    g_autoptr(LhLogCheck) held = NULL;

    turned.nic.bandwidth /= 3;
    for (int row = 0; row < ROWS; row++) {
        LhNcclTestTime time;

        ck_assert(lh_nccl_test_time(m.single, bytes_of(m.single, row), &time, NULL));
        times[row] = seconds_on(m.single, &turned, bytes_of(m.single, row)) / time.seconds;
    }
    held = hold_times(&m, times);
    ck_assert_uint_eq(held->causes->len, G_N_ELEMENTS(paths) - 1);
    for (guint i = 0; i < held->causes->len; i++) {
        const LhLogCheckCause *cause = &g_array_index(held->causes, LhLogCheckCause, i);

        ck_assert_msg(g_strv_contains(paths, cause->lever->path), "%s", cause->lever->path);
        ck_assert_msg(cause->factor > 0.31 && cause->factor < 0.4, "%g", cause->factor);
        ck_assert_uint_eq(cause->inside, ROWS);
    }
    made_clear(&m);
}
END_TEST

/* Faster than predicted: a lever above 1. */
START_TEST(logs_may_be_fast)
{
    Made m = make_single("hgx-h100", 1, "alltoall");
    LhTopology turned = *m.single->setup->topology;
    g_autoptr(GString) log = g_string_new(NULL);
    g_autoptr(LhLogCheck) held = NULL;

    turned.nvlink.bandwidth *= 3;
    begin_log(m.single, log);
    for (int row = 0; row < ROWS; row++)
        log_row(m.single, bytes_of(m.single, row),
                seconds_on(m.single, &turned, bytes_of(m.single, row)), log);
    held = hold(&m, log);
    ck_assert_uint_eq(held->causes->len, 1);
    ck_assert(g_array_index(held->causes, LhLogCheckCause, 0).factor == 3);
    made_clear(&m);
}
END_TEST

/* Sizes to measure when there is no log. Those of large steps end where numbers overflow. */
START_TEST(sizes_end)
{
    static const struct {
        uint64_t least, most, factor;
        guint rows;
    } cases[] = {
        { UINT64_C(1) << 44, LH_NCCL_TEST_BYTES_MAX, 1 << 20, 1 },
        { UINT64_C(1) << 30, LH_NCCL_TEST_BYTES_MAX, 1 << 20, 2 },
        { UINT64_C(1) << 50, LH_NCCL_TEST_BYTES_MAX, 2, 1 },
        { (UINT64_C(1) << 49) + 1, LH_NCCL_TEST_BYTES_MAX, 2, 1 },
        { 1, 8, 2, 4 },
        { 7, 7, 3, 1 },
        { 3, 9, 3, 2 },
    };
    Made m = make_single("hgx-h100", 1, "all_reduce");

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const LhLogCheckQuery query = { .scenario = m.scenario,
                                        .op = m.single->op,
                                        .bytes_min = cases[i].least,
                                        .bytes_max = cases[i].most,
                                        .factor = cases[i].factor };
        g_autoptr(LhLogCheck) held = lh_log_check_new(&query, NULL);
        const LhLogCheckRun *run = g_ptr_array_index(held->runs, 0);

        ck_assert_uint_eq(run->rows->len, cases[i].rows);
        ck_assert_uint_eq(g_array_index(run->rows, LhLogCheckRow, 0).bytes, cases[i].least);
    }
    made_clear(&m);
}
END_TEST

LH_TEST_MAIN("held", a_lever_that_was_turned_is_named, chance_is_not_named, sound_logs_are_inside,
             one_slow_row_is_seen, half_a_reason_is_none, nvls_that_is_off_is_named,
             messages_through_memory_are_named, what_explains_equally_well_is_named,
             logs_may_be_fast, sizes_end)
