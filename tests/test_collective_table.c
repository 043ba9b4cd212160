/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of collectives within a node, as measured rows and as fitted lines: on rows made by these
 * tests and on those of the shipped topologies.
 */
#include "data_files.h"
#include "scenario/profile.h"
#include "sim/network/collectives/collective_lines.h"
#include "sim/network/collectives/collective_table.h"
#include "sim/network/collectives/collective_times.h"
#include "sim/network/collectives/measured.h"
#include "sim/network/collectives/nccl_measured.h"

#include <math.h>

#define NEAR 1e-12
#define KNOTS 3 /* per row */
#define US (LH_PS_PER_S / 1000000)

static LhCollectiveTimes *
add_sizes(GArray *times, LhCollectiveKind op, uint64_t ranks, guint count, const uint64_t *bytes,
          const double *us)
{
    LhCollectiveTimes row = { .op = (int)op,
                              .ranks = ranks,
                              .from.provenance = LH_PROVENANCE_MEASURED };

    row.bytes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    row.us = g_array_new(FALSE, FALSE, sizeof(double));
    g_array_append_vals(row.bytes, bytes, count);
    g_array_append_vals(row.us, us, count);
    g_array_append_val(times, row);
    return &g_array_index(times, LhCollectiveTimes, times->len - 1);
}

static void
add_row(GArray *times, LhCollectiveKind op, uint64_t ranks, LhProvenance provenance,
        const uint64_t bytes[KNOTS], const double us[KNOTS])
{
    add_sizes(times, op, ranks, KNOTS, bytes, us)->from.provenance = (int)provenance;
}

static void
free_rows(GArray *times)
{
    for (guint i = 0; i < times->len; i++) {
        g_array_unref(g_array_index(times, LhCollectiveTimes, i).bytes);
        g_array_unref(g_array_index(times, LhCollectiveTimes, i).us);
    }
    g_array_unref(times);
}

static double
us_of(const GArray *times, LhCollectiveKind kind, uint64_t ranks, double bytes)
{
    double seconds = -1;
    int provenance = -1;

    ck_assert(lh_collective_times_seconds(times, kind, ranks, bytes, &seconds, &provenance));
    return 1e6 * seconds;
}

static GArray *
own_rows(void)
{
    static const uint64_t bytes[] = { 1000, 2000, 10000 };
    static const double two[] = { 5, 4, 20 }, eight[] = { 10, 12, 44 };
    GArray *times = g_array_new(FALSE, FALSE, sizeof(LhCollectiveTimes));

    add_row(times, LH_COLL_ALL_GATHER, 8, LH_PROVENANCE_ASSUMED, bytes, eight);
    add_row(times, LH_COLL_ALL_GATHER, 2, LH_PROVENANCE_MEASURED, bytes, two);
    add_row(times, LH_COLL_ALL_REDUCE, 2, LH_PROVENANCE_MEASURED, bytes, two);
    add_row(times, LH_COLL_ALL_REDUCE, 4, LH_PROVENANCE_MEASURED, bytes, eight);
    return times;
}

START_TEST(times_are_lines_in_bytes)
{
    GArray *times = own_rows();
    static const struct {
        double bytes, us;
    } expected[] = {
        { 0, 5 },     { 999, 5 },    { 1000, 5 },   { 1500, 4.5 }, { 2000, 4 },
        { 6000, 12 }, { 10000, 20 }, { 12000, 24 }, { 1e6, 2000 },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++)
        ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 2, expected[i].bytes),
                                expected[i].us, NEAR * expected[i].us);
    free_rows(times);
}
END_TEST

/* Interpolation between two inner sizes: 2/3 of the way from the chord to the intersection of the
 * neighbouring lines, if both neighbouring lines are on the same side of it. */
START_TEST(times_bend_where_their_lines_do)
{
    static const uint64_t bytes[] = { 10, 20, 40, 80 };
    static const struct {
        double us[4], at, straight, meet;
    } expected[] = {
        { { 10, 20, 34, 42 }, 30, 27, 30 },   /* 30 = 20 + 10, 32 = 34 - 2 */
        { { 10, 20, 34, 42 }, 35, 30.5, 33 }, /* 35, and 33 = 34 - 1 */
        { { 10, 20, 60, 160 }, 30, 40, 35 },  /* below: 30, 35 = 60 - 25 */
        { { 10, 20, 24, 64 }, 30, 22, 22 },   /* 30 = 20 + 10, but 14 = 24 - 10 */
        { { 10, 20, 40, 80 }, 30, 30, 30 },   /* one line */
        { { 10, 20, 21, 21.5 }, 25, 20.25, 20.8125 },
        { { 10, 20, 40, 50 }, 39, 39, 39 }, /* the line before is the chord */
        { { 10, 30, 34, 36 }, 40, 34, 34 },
        { { 10, 20, 34, 42 }, 15, 15, 15 },
        { { 10, 20, 34, 42 }, 60, 38, 38 },
        { { 10, 14, 40, 41 }, 21, 15.3, 15.3 },
        { { 20, 10, 11, 20 }, 30, 10.5, 10 }, /* -0 and 8.75: at least the smaller neighbour */
    };

    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++) {
        GArray *times = g_array_new(FALSE, FALSE, sizeof(LhCollectiveTimes));
        const double us = expected[i].straight + (expected[i].meet - expected[i].straight) * 2 / 3;

        add_sizes(times, LH_COLL_ALL_GATHER, 2, 4, bytes, expected[i].us);
        ck_assert_msg(fabs(us_of(times, LH_COLL_ALL_GATHER, 2, expected[i].at) - us) < 1e-9,
                      "case %zu: %g, expected %g", i,
                      us_of(times, LH_COLL_ALL_GATHER, 2, expected[i].at), us);
        free_rows(times);
    }
}
END_TEST

/* The first of two versions holds until another one is chosen. */
START_TEST(versions_are_chosen)
{
    static const uint64_t bytes[] = { 1000, 2000 };
    static const double us[] = { 1, 2 }, other_us[] = { 3, 4 };
    GArray *times = g_array_new(FALSE, FALSE, sizeof(LhCollectiveTimes));

    for (int i = 0; i < 2; i++) {
        add_sizes(times, LH_COLL_ALL_GATHER, 2, 2, bytes, i == 0 ? us : other_us)->nccl =
            (char *)(i == 0 ? "2.27.3, 2.29.2" : "2.23");
        add_sizes(times, LH_COLL_ALL_GATHER, 4, 2, bytes, i == 0 ? us : other_us)->nccl =
            (char *)(i == 0 ? "2.27.3, 2.29.2" : "2.23, 2.24");
    }
    add_sizes(times, LH_COLL_ALL_REDUCE, 2, 2, bytes, us);
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 2, 1000), 1, NEAR);
    ck_assert(!lh_collective_times_choose(times, "2.2"));
    ck_assert(!lh_collective_times_choose(NULL, "2.23"));
    ck_assert(lh_collective_times_choose(times, "2.24"));
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 2, 1000), 1, NEAR);
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 4, 1000), 3, NEAR);
    ck_assert(lh_collective_times_choose(times, "2.23"));
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 2, 1000), 3, NEAR);
    ck_assert(lh_collective_times_choose(times, "2.29.2"));
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 2, 1000), 1, NEAR);
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 4, 1000), 1, NEAR);
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_REDUCE, 2, 1000), 1, NEAR);
    free_rows(times);
}
END_TEST

/* Between numbers of ranks: linear in them, at equal bytes per rank. */
START_TEST(times_lie_between_numbers_of_ranks)
{
    GArray *times = own_rows();
    double seconds = -1;
    int provenance = -1;

    /* 5 ranks of 400 bytes: the mean of 800 bytes on 2 (5 us) and 3200 on 8 (12 + 32 x 0.15 us). */
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 5, 2000), 0.5 * 5 + 0.5 * 16.8, 1e-9);
    /* A vector held by all ranks has the same size on any number of ranks. */
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_REDUCE, 3, 2000), 0.5 * 4 + 0.5 * 12, 1e-9);
    ck_assert(lh_collective_times_seconds(times, LH_COLL_ALL_GATHER, 5, 1, &seconds, &provenance));
    ck_assert_int_eq(provenance, LH_PROVENANCE_ASSUMED);
    ck_assert(lh_collective_times_seconds(times, LH_COLL_ALL_GATHER, 2, 1, &seconds, &provenance));
    ck_assert_int_eq(provenance, LH_PROVENANCE_MEASURED);
    seconds = -1;
    ck_assert(!lh_collective_times_seconds(times, LH_COLL_ALL_GATHER, 9, 1, &seconds, &provenance));
    ck_assert(!lh_collective_times_seconds(times, LH_COLL_ALL_TO_ALL, 2, 1, &seconds, &provenance));
    ck_assert(!lh_collective_times_seconds(NULL, LH_COLL_ALL_GATHER, 2, 1, &seconds, &provenance));
    ck_assert_double_eq(seconds, -1);
    free_rows(times);
}
END_TEST

START_TEST(sizes_can_be_left_out)
{
    GArray *times = own_rows();

    ck_assert(!lh_collective_times_leave_out(times, LH_COLL_ALL_GATHER, 2, 1500));
    ck_assert(!lh_collective_times_leave_out(times, LH_COLL_ALL_GATHER, 5, 2000));
    ck_assert(lh_collective_times_leave_out(times, LH_COLL_ALL_GATHER, 2, 2000));
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_GATHER, 2, 2000), 5 + 15.0 / 9, 1e-9);
    ck_assert_double_eq_tol(us_of(times, LH_COLL_ALL_REDUCE, 2, 2000), 4, 1e-9);
    ck_assert(!lh_collective_times_leave_out(times, LH_COLL_ALL_GATHER, 2, 1000)); /* two left */
    ck_assert(!lh_collective_times_leave_out(NULL, LH_COLL_ALL_GATHER, 2, 1000));
    free_rows(times);
}
END_TEST

/* a + b h + w / B + m / C, computed by hand. */
START_TEST(lines_are_their_formula)
{
    const LhCollectiveLine ll = { .base_ps = 10 * US, .hop_ps = US };
    const LhCollectiveLine ll128 = { .base_ps = 10 * US, .bandwidth = 1e9 };
    const LhCollectiveLine simple = {
        .base_ps = 20 * US, .hop_ps = 3 * US, .bandwidth = 1e9, .copy = 2e9
    };
    static const struct {
        LhCollectiveKind kind;
        uint64_t ranks;
        double bytes, us;
    } expected[] = {
        { LH_COLL_ALL_GATHER, 4, 400, 10 + 3 },          /* w = 300: LL */
        { LH_COLL_ALL_GATHER, 4, 4000, 10 + 3 },         /* w = 3000: LL128 */
        { LH_COLL_ALL_GATHER, 4, 8000, 20 + 9 + 6 + 1 }, /* w = 6000, m = 2000 */
        { LH_COLL_ALL_REDUCE, 4, 4000, 20 + 18 + 6 + 1 },
        { LH_COLL_ALL_REDUCE, 2, 300, 10 + 2 },
        { LH_COLL_ALL_TO_ALL, 8, 8000, 20 + 9 + 7 + 0.5 },
        { LH_COLL_BROADCAST, 2, 8000, 20 + 3 + 8 + 4 },
    };
    g_autoptr(GArray) lines = g_array_new(FALSE, FALSE, sizeof(LhCollectiveLines));

    for (int op = 0; op < LH_COLL_KINDS; op++) {
        const LhCollectiveLines row = { .op = op,
                                        .ll = ll,
                                        .ll128 = ll128,
                                        .simple = simple,
                                        .ll_bytes = 500,
                                        .ll128_bytes = 5000,
                                        .from.provenance = LH_PROVENANCE_FITTED };

        if (op != LH_COLL_REDUCE_SCATTER)
            g_array_append_val(lines, row);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++) {
        const LhCollectiveLines *row = lh_collective_lines_find(lines, expected[i].kind);
        const double us = 1e6 * lh_collective_lines_seconds(row, expected[i].ranks,
                                                            expected[i].bytes, LH_LINK_AS_MEASURED);

        ck_assert_double_eq_tol(us, expected[i].us, 1e-9 * expected[i].us);
    }
    ck_assert_ptr_null(lh_collective_lines_find(lines, LH_COLL_REDUCE_SCATTER));
}
END_TEST

/* Every shipped row is exact at its sizes, continuous, and increasing beyond them. */
START_TEST(shipped_times_are_exact_continuous_and_go_on)
{
    g_auto(GStrv) names = lh_data_list("topologies");
    guint rows = 0;

    for (char **name = names; *name != NULL; name++) {
        g_autoptr(LhTopology) t = lh_topology_load(*name, NULL);

        for (guint i = 0; t->collective_times != NULL && i < t->collective_times->len;
             i++, rows++) {
            const LhCollectiveTimes copy = g_array_index(t->collective_times, LhCollectiveTimes, i);
            const LhCollectiveTimes *row = &copy;
            const LhCollectiveKind kind = (LhCollectiveKind)row->op;
            const guint last = row->bytes->len - 1;
            g_auto(GStrv) versions = g_strsplit(row->nccl, ", ", -1);

            ck_assert(lh_collective_times_choose(t->collective_times, versions[0]));

            for (guint k = 0; k <= last; k++) {
                const double bytes = (double)g_array_index(row->bytes, uint64_t, k);
                const double us = g_array_index(row->us, double, k);

                ck_assert_double_eq_tol(us_of(t->collective_times, kind, row->ranks, bytes), us,
                                        1e-9 * us);
                ck_assert_double_eq_tol(
                    us_of(t->collective_times, kind, row->ranks, bytes * (1 - 1e-9)), us,
                    1e-6 * us);
                ck_assert_double_eq_tol(
                    us_of(t->collective_times, kind, row->ranks, bytes * (1 + 1e-9)), us,
                    1e-6 * us);
            }
            ck_assert_double_gt(us_of(t->collective_times, kind, row->ranks,
                                      10 * (double)g_array_index(row->bytes, uint64_t, last)),
                                5 * g_array_index(row->us, double, last));
        }
    }
    ck_assert_uint_gt(rows, 120);
}
END_TEST

/* Lines fitted with least squares by tools/collectives.py are near the measured times they
 * replace. */
START_TEST(shipped_lines_are_near_times)
{
    g_auto(GStrv) names = lh_data_list("topologies");

    for (char **name = names; *name != NULL; name++) {
        g_autoptr(LhTopology) t = lh_topology_load(*name, NULL);
        double sum = 0;
        guint count = 0;

        if (t->collective_lines == NULL || t->collective_times == NULL)
            continue;
        for (guint i = 0; i < t->collective_times->len; i++) {
            const LhCollectiveTimes *row =
                &g_array_index(t->collective_times, LhCollectiveTimes, i);

            for (guint k = 0; k < row->bytes->len; k++, count++) {
                const LhCollectiveLines *lines =
                    lh_collective_lines_find(t->collective_lines, (LhCollectiveKind)row->op);
                double seconds;

                ck_assert_ptr_nonnull(lines);
                seconds = lh_collective_lines_seconds(
                    lines, row->ranks, (double)g_array_index(row->bytes, uint64_t, k),
                    LH_LINK_AS_MEASURED);
                sum += fabs(1e6 * seconds / g_array_index(row->us, double, k) - 1);
            }
        }
        ck_assert_msg(sum / count < 0.1, "%s: %.3f", *name, sum / count);
    }
}
END_TEST

/* ---- on a network ---- */

static double
native_us(const LhTopology *t, LhGroup group, LhCollectiveKind kind, double shard,
          const GArray *faults)
{
    g_autoptr(LhDevice) device = lh_device_load(t->device_name, NULL);
    const uint32_t nodes = 2;
    LhNetwork network;
    LhNcclMeasured *native;
    int provenance;
    double us;

    ck_assert(
        lh_network_init(&network, t, nodes, nodes * (uint32_t)t->gpus_per_node, faults, NULL));
    native = lh_nccl_measured_new(&network, device, &group);
    ck_assert(lh_nccl_measured_is_known(native, kind));
    us = 1e6 * lh_nccl_measured_seconds(native, kind, shard, &provenance);
    lh_nccl_measured_free(native);
    return us;
}

/* Efficiency relative to the links: of the slope between the last two sizes, or of the best whole
 * size if that is higher. */
static double
efficiency_of_large(const LhCollectiveTimes *row)
{
    const guint last = row->us->len - 1;
    const double bytes = (double)(g_array_index(row->bytes, uint64_t, last) -
                                  g_array_index(row->bytes, uint64_t, last - 1));
    const double us =
        g_array_index(row->us, double, last) - g_array_index(row->us, double, last - 1);
    uint64_t at;

    return fmin(1, fmax(1e6 * bytes * row->bound_s_per_byte / us,
                        lh_collective_times_efficiency(row, &at)));
}

/* The parts of a time, computed by hand: all-gather on 8 H100, 64 MiB in 209.25 us, 10.4 us of it
 * for the first size. Rings at 371 GB/s carry 7/8 of the bytes over that rate. */
START_TEST(native_times_follow_the_links)
{
    const LhGroup eight = { .base = 8, .stride = 1, .count = 8, .outer_count = 1 };
    const LhLinkFault slow = { LH_TIER_NVLINK, 1, 0.5 }, elsewhere = { LH_TIER_NVLINK, 0, 0.5 };
    const double shard = 8388608;
    g_autoptr(LhTopology) t = lh_topology_load("hgx-h100", NULL);
    g_autoptr(GArray) faults = g_array_new(FALSE, TRUE, sizeof(LhLinkFault));
    const double floor = native_us(t, eight, LH_COLL_ALL_GATHER, 0, NULL);
    const double whole = native_us(t, eight, LH_COLL_ALL_GATHER, shard, NULL);
    LhCollectiveRows rows;
    double at_links, on_links, on_links_by_hand, half, latency;
    uint64_t bytes;

    ck_assert_double_eq_tol(floor, 10.4, 1e-9);
    ck_assert_double_eq_tol(whole, 209.25, 1e-9);
    ck_assert(lh_collective_times_find(t->collective_times, LH_COLL_ALL_GATHER, 8, &rows));
    ck_assert_double_eq_tol(rows.fewer->bound_s_per_byte, 7.0 / 8 / 371e9, 1e-20);
    at_links = 1e6 * 8 * shard * rows.fewer->bound_s_per_byte;
    /* The efficiency at large sizes is between that of the best size and 1. */
    ck_assert_double_lt(lh_collective_times_efficiency(rows.fewer, &bytes), 1);
    half = native_us(t, eight, LH_COLL_ALL_GATHER, shard, NULL) - floor;
    g_array_append_val(faults, elsewhere);
    ck_assert_double_eq_tol(native_us(t, eight, LH_COLL_ALL_GATHER, shard, faults), whole, 1e-9);
    g_array_append_val(faults, slow);
    on_links = native_us(t, eight, LH_COLL_ALL_GATHER, shard, faults) - whole;
    /* Twice the time of the links, and half of the protocols' time. */
    on_links_by_hand = at_links / efficiency_of_large(rows.fewer);
    on_links_by_hand += (half - on_links_by_hand) / 2;
    ck_assert_double_eq_tol(on_links, on_links_by_hand, 1e-6);
    t->nvlink.bandwidth /= 2; /* in the file, instead of by a fault */
    ck_assert_double_eq_tol(native_us(t, eight, LH_COLL_ALL_GATHER, shard, NULL), whole + on_links,
                            1e-9);
    t->nvlink.bandwidth *= 4;
    ck_assert_double_eq_tol(native_us(t, eight, LH_COLL_ALL_GATHER, shard, NULL),
                            whole - on_links / 2, 1e-9);
    t->nvlink.bandwidth /= 2;
    t->nvlink.latency_ps /= 2;
    latency = floor - native_us(t, eight, LH_COLL_ALL_GATHER, 0, NULL);
    ck_assert_double_gt(latency, 0); /* hops are part of the floor, at most half of it */
    ck_assert_double_le_tol(latency, floor / 4, 1e-9);
    ck_assert_double_eq_tol(native_us(t, eight, LH_COLL_ALL_GATHER, shard, NULL), whole - latency,
                            1e-9);
}
END_TEST

/* New knowledge of the same links: a row measured on them keeps its time, or the links' lower
 * bound. Rows measured on other links keep those. */
START_TEST(native_times_follow_what_is_known_of_links)
{
    static const struct {
        const char *name;
        double narrower, longer;
        bool has_row;
    } cases[] = { { "hgx-h100", 1.25, 1.1, true },
                  { "hgx-h100", 2, 1.3, true },
                  { "hgx-h800", 1.25, 1.1, false },
                  { "hgx-h800", 2, 1.3, false } };
    const LhGroup eight = { .stride = 1, .count = 8, .outer_count = 1 };
    const double shard = 8388608;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhTopology) t = lh_topology_load(cases[i].name, NULL);
        const LhTopology before = *t;
        const double whole = native_us(t, eight, LH_COLL_ALL_GATHER, shard, NULL);
        double slower, least;

        t->nvlink.bandwidth /= cases[i].narrower;
        t->nvlink.latency_ps *= cases[i].has_row ? 2 : 1;
        least = 1e6 * 7 * shard / t->nvlink.bandwidth;
        ck_assert(!cases[i].has_row || (least > whole) == (cases[i].narrower == 2));
        slower = native_us(t, eight, LH_COLL_ALL_GATHER, shard, NULL);
        ck_assert_double_gt(slower, cases[i].longer * whole);
        lh_measured_follow(t, &before);
        ck_assert_double_eq_tol(native_us(t, eight, LH_COLL_ALL_GATHER, shard, NULL),
                                cases[i].has_row ? fmax(whole, least) : slower, 1e-9);
    }
}
END_TEST

/* An unmeasured number of GPUs on links half as fast: between the neighbouring rows. */
START_TEST(native_times_between_rows_follow_the_links)
{
    const double shard = 1e6;
    g_autoptr(LhTopology) t = lh_topology_load("hgx-h100", NULL);
    double us[3];

    t->nvlink.bandwidth /= 2;
    for (uint32_t i = 0; i < 3; i++) {
        const LhGroup group = { .stride = 1, .count = 4 + 2 * i, .outer_count = 1 };

        us[i] = native_us(t, group, LH_COLL_ALL_GATHER, shard, NULL);
    }
    ck_assert_double_eq_tol(us[1], (us[0] + us[2]) / 2, 0.02 * us[1]);
}
END_TEST

static double
line_us(const LhTopology *t, LhCollectiveKind kind, uint64_t ranks, double bytes, double slower)
{
    return 1e6 * lh_collective_lines_seconds(
                     lh_collective_lines_find(t->collective_lines, kind), ranks, bytes,
                     (LhLinkSlowdown){ slower, 1, LH_PROTOCOLS_ON_LINKS, 0 });
}

/* Precedence: measured times, then lines, then NCCL's own model; neither of the first two between
 * nodes. */
START_TEST(native_times_come_in_order)
{
    const LhGroup four = { .stride = 1, .count = 4, .outer_count = 1 };
    const LhGroup sixteen = { .stride = 1, .count = 16, .outer_count = 1 };
    const LhGroup both = { .stride = 4, .count = 4, .outer_count = 1 };
    g_autoptr(LhTopology) h800 = lh_topology_load("hgx-h800", NULL);
    g_autoptr(LhTopology) rack = lh_topology_load("nvl72", NULL);
    g_autoptr(LhTopology) bare = lh_topology_load("dfa-2node", NULL);
    g_autoptr(LhTopology) h100 = lh_topology_load("hgx-h100", NULL);
    g_autoptr(LhDevice) device = lh_device_load("h100-sxm", NULL);
    int provenance;
    LhNetwork network;
    LhNcclMeasured *native;
    LhNcclGroup *nccl;

    /* Lines of an H100 with all its NVLinks. */
    ck_assert_double_eq_tol(native_us(h800, four, LH_COLL_ALL_GATHER, 1e6, NULL),
                            line_us(h800, LH_COLL_ALL_GATHER, 4, 4e6, 371.0 / 165), 1e-6);
    ck_assert_double_eq_tol(native_us(rack, sixteen, LH_COLL_ALL_TO_ALL, 1e6, NULL),
                            line_us(rack, LH_COLL_ALL_TO_ALL, 16, 1e6, 1), 1e-6);
    ck_assert(lh_network_init(&network, h100, 2, 16, NULL, NULL));
    native = lh_nccl_measured_new(&network, device, &both);
    ck_assert(!lh_nccl_measured_is_measured(native, LH_COLL_ALL_GATHER));
    ck_assert(!lh_nccl_measured_is_known(native, LH_COLL_ALL_TO_ALL));
    nccl = lh_nccl_group_new(&network, device, &both);
    ck_assert_double_eq_tol(
        lh_nccl_measured_seconds(native, LH_COLL_ALL_GATHER, 1048576, &provenance),
        lh_nccl_seconds(nccl, LH_COLL_ALL_GATHER, 1048576, NULL), 1e-12);
    ck_assert_int_eq(provenance, LH_PROVENANCE_DATASHEET);
    lh_nccl_measured_seconds(native, LH_COLL_ALL_REDUCE, 1048576, &provenance);
    ck_assert_int_eq(provenance, LH_PROVENANCE_ASSUMED); /* tree over two nodes */
    lh_nccl_group_free(nccl);
    lh_nccl_measured_free(native);
    ck_assert(lh_network_init(&network, bare, 1, 4, NULL, NULL));
    native = lh_nccl_measured_new(&network, device, &four);
    ck_assert(!lh_nccl_measured_is_measured(native, LH_COLL_ALL_GATHER));
    ck_assert(!lh_nccl_measured_is_known(native, LH_COLL_ALL_TO_ALL));
    lh_nccl_measured_free(native);
}
END_TEST

/* A profile's rows of an operation replace all rows of it; other operations keep theirs. Later
 * measurements replace earlier ones. */
START_TEST(profiles_replace_times)
{
    static const char text[] =
        "{\"schema\": \"longhaul.profile/2\", \"name\": \"p\", \"source\": \"s\", "
        "\"elementwise\": [{\"kernel\": \"merge\", \"bandwidth\": \"%s\", "
        "\"provenance\": \"measured\", \"source\": \"s\"}], "
        "\"collective_times\": [{\"op\": \"all-gather\", \"ranks\": %d, "
        "\"nccl\": \"3.0\", \"bytes\": [1000, 2000], \"us\": [%d, 200], "
        "\"provenance\": \"measured\", \"source\": \"s\"}]}";
    g_autoptr(LhTopology) with = lh_topology_load("hgx-h100", NULL);
    g_autoptr(LhTopology) without = lh_topology_load("dfa-2node", NULL);
    g_autoptr(LhDevice) device = lh_device_load("h100-sxm", NULL);
    const double reduce_us = us_of(with->collective_times, LH_COLL_ALL_REDUCE, 2, 1e6);
    double seconds;
    int provenance;

    ck_assert_ptr_null(without->collective_times);
    for (int us = 100; us <= 150; us += 50) {
        g_autofree char *file = g_strdup_printf(text, us == 100 ? "1TB/s" : "2TB/s", 2, us);
        g_autoptr(LhProfile) p = lh_profile_parse("p.json", file, strlen(file), NULL);

        ck_assert_ptr_nonnull(p);
        ck_assert(lh_profile_apply(p, device, with, NULL));
        ck_assert(lh_profile_apply(p, device, without, NULL));
        ck_assert_double_eq_tol(us_of(with->collective_times, LH_COLL_ALL_GATHER, 2, 1000), us,
                                NEAR * us);
        ck_assert_double_eq_tol(us_of(without->collective_times, LH_COLL_ALL_GATHER, 2, 1000), us,
                                NEAR * us);
        ck_assert(!lh_collective_times_seconds(with->collective_times, LH_COLL_ALL_GATHER, 8, 1000,
                                               &seconds, &provenance));
        ck_assert_double_eq_tol(us_of(with->collective_times, LH_COLL_ALL_REDUCE, 2, 1e6),
                                reduce_us, NEAR * reduce_us);
        ck_assert_uint_eq(without->collective_times->len, 1);
        ck_assert_uint_eq(device->elementwise->len, 1);
        ck_assert_double_eq(lh_device_traffic(device, "merge")->bandwidth, us == 100 ? 1e12 : 2e12);
    }
    {
        g_autofree char *file = g_strdup_printf(text, "1TB/s", 9, 100);
        g_autoptr(LhProfile) p = lh_profile_parse("p.json", file, strlen(file), NULL);
        g_autoptr(GError) error = NULL;

        ck_assert(!lh_profile_apply(p, device, with, &error));
        ck_assert_ptr_nonnull(strstr(error->message, "p.json:1:"));
    }
}
END_TEST

/* A profile's rows belong to its own links, whatever the file's are; the file's other rows keep the
 * links they were measured on. */
START_TEST(profiles_measured_on_their_own_links)
{
    static const char text[] =
        "{\"schema\": \"longhaul.profile/2\", \"name\": \"p\", \"source\": \"s\", "
        "\"nvlink\": {\"bandwidth\": \"100GB/s\", \"latency\": \"6us\", \"ctas\": 16, "
        "\"provenance\": \"measured\", "
        "\"source\": \"s\"}, "
        "\"collective_times\": [{\"op\": \"all-gather\", \"ranks\": 8, "
        "\"bytes\": [8000000, 80000000], \"us\": [100, 800], "
        "\"provenance\": \"measured\", \"source\": \"s\"}]}";
    const LhGroup eight = { .stride = 1, .count = 8, .outer_count = 1 };
    g_autoptr(LhTopology) t = lh_topology_load("hgx-h100", NULL);
    g_autoptr(LhDevice) device = lh_device_load("h100-sxm", NULL);
    g_autoptr(LhProfile) p = lh_profile_parse("p.json", text, strlen(text), NULL);
    const double before = native_us(t, eight, LH_COLL_REDUCE_SCATTER, 8e6, NULL);

    ck_assert_ptr_nonnull(p);
    ck_assert(lh_profile_apply(p, device, t, NULL));
    ck_assert_double_eq_tol(native_us(t, eight, LH_COLL_ALL_GATHER, 1e7, NULL), 800, 1e-9);
    ck_assert_double_gt(native_us(t, eight, LH_COLL_REDUCE_SCATTER, 8e6, NULL), 2 * before);
}
END_TEST

/* Time of the all-gather row of 8 H100 at @bytes on links slower by a factor, at one end of its
 * interval. */
static double
end_us(const LhTopology *t, double bytes, double slower, double protocols, int end)
{
    LhCollectiveRows rows;
    const LhLinkSlowdown slowdown = { slower, 1, protocols, end };

    ck_assert(lh_collective_times_find(t->collective_times, LH_COLL_ALL_GATHER, 8, &rows));
    return 1e6 * lh_collective_rows_seconds(&rows, bytes, slowdown, slowdown);
}

/* On the links of its measurement a row has no interval. On others the middle is the mean of the
 * times with all and with none of the protocol time scaled with the links, and the half-width is
 * the relative distance to these; for small sizes it is at least 0.4 of the log of the links'
 * slowdown. The lower end is at least the lower bound of the links. */
START_TEST(times_have_ends_on_other_links)
{
    static const double sizes[] = { 65536, 1048576, 4194304, 33554432, 268435456 };
    static const double slower[] = { 0.02, 0.5, 1 / 1.1, 1.1, 2, 50 };
    g_autoptr(LhTopology) t = lh_topology_load("hgx-h100", NULL);
    const double least_us = 1e6 * 7.0 / 8 / 371e9;

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        const double bytes = sizes[i], whole = end_us(t, bytes, 1, 0.5, 0);

        ck_assert(end_us(t, bytes, 1, 0, 0) == whole && end_us(t, bytes, 1, 1, 0) == whole);
        ck_assert(end_us(t, bytes, 1, 0.5, -1) == whole && end_us(t, bytes, 1, 0.5, 1) == whole);
        for (size_t k = 0; k < G_N_ELEMENTS(slower); k++) {
            const double middle = end_us(t, bytes, slower[k], 0.5, 0);
            const double none = end_us(t, bytes, slower[k], 0, 0);
            const double all = end_us(t, bytes, slower[k], 1, 0);
            const double edited = bytes < 16 << 20 ? 0.4 * fabs(log(slower[k])) : 0;
            const double width = fmax(fabs(all - none) / 2 / middle, edited);
            const double floor = least_us * bytes * slower[k];

            ck_assert_double_eq_tol(middle, (none + all) / 2, 1e-9 * middle);
            ck_assert(slower[k] > 1 ? all >= none : all <= none);
            ck_assert_double_eq_tol(end_us(t, bytes, slower[k], 0.5, 1), middle * (1 + width),
                                    1e-9 * middle);
            ck_assert_double_eq_tol(end_us(t, bytes, slower[k], 0.5, -1),
                                    fmax(middle / (1 + width), floor), 1e-6 * middle);
        }
    }
}
END_TEST

LH_TEST_MAIN("collective_table", times_are_lines_in_bytes, times_bend_where_their_lines_do,
             versions_are_chosen, times_lie_between_numbers_of_ranks, sizes_can_be_left_out,
             lines_are_their_formula, shipped_times_are_exact_continuous_and_go_on,
             shipped_lines_are_near_times, native_times_follow_the_links,
             native_times_follow_what_is_known_of_links, native_times_between_rows_follow_the_links,
             native_times_come_in_order, profiles_replace_times,
             profiles_measured_on_their_own_links, times_have_ends_on_other_links)
