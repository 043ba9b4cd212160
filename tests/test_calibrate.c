/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits recover the constants that data were made from; a calibration survives its file; the
 * simulator uses it.
 */
#include "base/error.h"
#include "calibrate/calibrate.h"
#include "calibrate/calibration_profile.h"
#include "calibrate/fit_call.h"
#include "calibrate/kernel_curves.h"
#include "measure/fit.h"
#include "measure/interference.h"
#include "measure/measure_executor.h"
#include "run_tests.h"
#include "runtime/process/clocks.h"
#include "runtime/thread_affinity.h"
#include "sim/cost/cost.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define NS_PER_S INT64_C(1000000000)
#define RATE 93e9
#define HALF_LENGTH 85.0

/* A reproducible number in [-1, 1]. */
static double
noise(unsigned i)
{
    return sin(12.9898 * (i + 1));
}

static LhRatePoint
point(double length, double error)
{
    const double flops = 256 * length * length;

    return (LhRatePoint){ .keys = length,
                          .queries = length,
                          .flops = flops,
                          .seconds = flops / RATE * (1 + HALF_LENGTH / length) * (1 + error) };
}

START_TEST(calibrate_rate_is_recovered)
{
    LhRatePoint points[7];
    LhResiduals residuals;
    LhRateFit fit;

    for (unsigned i = 0; i < 7; i++)
        points[i] = point(64 << i, 0);
    ck_assert(lh_fit_rate(points, 7, INFINITY, &fit, &residuals));
    ck_assert_double_eq_tol(fit.rate / RATE, 1, 1e-9);
    ck_assert_double_eq_tol(fit.half_length, HALF_LENGTH, 1e-6);
    ck_assert_double_eq(fit.query_half_length, 0);
    ck_assert_double_le(residuals.worst, 1e-9);
    for (unsigned i = 0; i < 7; i++)
        points[i] = point(64 << i, 0.02 * noise(i));
    ck_assert(lh_fit_rate(points, 7, INFINITY, &fit, &residuals));
    ck_assert_double_eq_tol(fit.rate / RATE, 1, 0.02);
    ck_assert_double_eq_tol(fit.half_length / HALF_LENGTH, 1, 0.1);
    ck_assert_double_le(residuals.worst, 0.04);
    ck_assert_double_le(residuals.median, residuals.worst);
    ck_assert_double_eq(residuals.holdout, 0);
}
END_TEST

static LhRatePoint
rectangle(double queries, double keys, double half_length, double query_half_length)
{
    const double flops = 256 * queries * keys;

    return (LhRatePoint){ .keys = keys,
                          .queries = queries,
                          .flops = flops,
                          .seconds = flops / RATE *
                                     (1 + half_length / keys + query_half_length / queries) };
}

/* Blocks that are not square separate the costs of queries and keys. A length that the times would
 * make negative is 0, and the other one is the best fit given that. */
START_TEST(calibrate_rate_of_rectangles)
{
    const double lengths[][2] = { { 40, 150 }, { 150, 40 }, { 0, 90 }, { 90, 0 }, { 0, 0 } };

    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        LhRatePoint points[9];
        LhResiduals residuals;
        LhRateFit fit;

        for (unsigned k = 0; k < 9; k++)
            points[k] =
                rectangle(64 << 2 * (k / 3), 64 << 2 * (k % 3), lengths[i][0], lengths[i][1]);
        ck_assert(lh_fit_rate(points, 9, INFINITY, &fit, &residuals));
        ck_assert_double_eq_tol(fit.rate / RATE, 1, 1e-6);
        ck_assert_double_eq_tol(fit.half_length, lengths[i][0], 1e-3);
        ck_assert_double_eq_tol(fit.query_half_length, lengths[i][1], 1e-3);
        ck_assert_double_le(residuals.worst, 1e-6);
    }
}
END_TEST

START_TEST(calibrate_no_length_is_negative)
{
    LhRatePoint points[4] = { rectangle(64, 64, 100, -20), rectangle(64, 512, 100, -20),
                              rectangle(512, 64, 100, -20), rectangle(512, 512, 100, -20) };
    LhResiduals residuals;
    LhRateFit fit;

    ck_assert(lh_fit_rate(points, 4, INFINITY, &fit, &residuals));
    ck_assert_double_eq(fit.query_half_length, 0);
    ck_assert(fit.half_length > 40 && fit.half_length < 200);
    ck_assert_double_le(residuals.worst, 0.25);
}
END_TEST

START_TEST(calibrate_holdout_is_judged_only)
{
    LhRatePoint points[4] = { point(64, 0), point(256, 0), point(1024, 0), point(512, 0.25) };
    LhResiduals residuals;
    LhRateFit fit;

    points[3].holdout = true;
    ck_assert(lh_fit_rate(points, 4, INFINITY, &fit, &residuals));
    ck_assert_double_eq_tol(fit.rate / RATE, 1, 1e-9);
    ck_assert_double_eq_tol(residuals.holdout, 0.2, 1e-9);
    ck_assert_double_le(residuals.worst, 1e-9);
}
END_TEST

START_TEST(calibrate_rate_edges)
{
    LhRatePoint points[2] = { point(64, 0), point(128, 0) };
    LhResiduals residuals;
    LhRateFit fit = { .rate = 1 };

    ck_assert(!lh_fit_rate(points, 1, INFINITY, &fit, &residuals));
    points[1].holdout = true;
    ck_assert(!lh_fit_rate(points, 2, INFINITY, &fit, &residuals));
    ck_assert_double_eq(fit.rate, 1);
    points[1] = (LhRatePoint){ .keys = 128, .queries = 128, .flops = 1e9 }; /* takes no time */
    ck_assert(!lh_fit_rate(points, 2, INFINITY, &fit, &residuals));
    ck_assert_double_eq(fit.rate, 1);
    /* Faster when shorter: no length becomes negative. */
    points[0] = (LhRatePoint){ .keys = 64, .queries = 64, .flops = 1e9, .seconds = 0.01 };
    points[1] = (LhRatePoint){ .keys = 128, .queries = 128, .flops = 1e9, .seconds = 0.012 };
    ck_assert(lh_fit_rate(points, 2, INFINITY, &fit, &residuals));
    ck_assert_double_eq(fit.half_length, 0);
    ck_assert(fit.rate > 1e9 / 0.012 && fit.rate < 1e9 / 0.01);
}
END_TEST

/* If the times imply a rate above the peak, the fit returns the peak and the best half length for
 * it. */
START_TEST(calibrate_no_rate_is_above_the_peak)
{
    LhRatePoint points[3] = { point(64, 0), point(256, -0.3), point(1024, -0.5) };
    const double peak = 1.2 * RATE;
    LhResiduals residuals, free_residuals;
    LhRateFit fit, free_fit;

    ck_assert(lh_fit_rate(points, 3, INFINITY, &free_fit, &free_residuals));
    ck_assert_double_gt(free_fit.rate, peak);
    ck_assert(lh_fit_rate(points, 3, peak, &fit, &residuals));
    ck_assert_double_eq(fit.rate, peak);
    ck_assert(fit.half_length > 0 && fit.half_length < free_fit.half_length);
    ck_assert_double_gt(residuals.worst, free_residuals.worst);
    /* A peak above the fitted rate changes nothing. */
    ck_assert(lh_fit_rate(points, 3, 2 * free_fit.rate, &fit, &residuals));
    ck_assert_double_eq(fit.rate, free_fit.rate);
    ck_assert_double_eq(fit.half_length, free_fit.half_length);
}
END_TEST

START_TEST(calibrate_transfer_stands_outliers)
{
    LhTransferPoint points[9];
    LhResiduals residuals;
    double alpha, bandwidth;

    for (unsigned i = 0; i < 9; i++) {
        const double bytes = 4096.0 * (double)(1 << (2 * i));

        points[i] = (LhTransferPoint){ bytes, (20e-6 + bytes / 8e9) * (1 + 0.02 * noise(i)) };
    }
    ck_assert(lh_fit_transfer(points, 9, &alpha, &bandwidth, &residuals));
    ck_assert_double_eq_tol(alpha / 20e-6, 1, 0.05);
    ck_assert_double_eq_tol(bandwidth / 8e9, 1, 0.05);
    ck_assert_double_le(residuals.worst, 0.1);
    points[1].seconds *= 20;
    points[5].seconds *= 3;
    ck_assert(lh_fit_transfer(points, 9, &alpha, &bandwidth, &residuals));
    ck_assert_double_eq_tol(alpha / 20e-6, 1, 0.1);
    ck_assert_double_eq_tol(bandwidth / 8e9, 1, 0.1);
    ck_assert_double_ge(residuals.worst, 0.5);
}
END_TEST

START_TEST(calibrate_transfer_edges)
{
    const LhTransferPoint same[2] = { { 4096, 1e-6 }, { 4096, 2e-6 } };
    const LhTransferPoint falling[2] = { { 4096, 2e-6 }, { 8192, 1e-6 } };
    LhResiduals residuals;
    double alpha, bandwidth;

    ck_assert(!lh_fit_transfer(same, 0, &alpha, &bandwidth, &residuals));
    ck_assert(!lh_fit_transfer(same, 1, &alpha, &bandwidth, &residuals));
    ck_assert(!lh_fit_transfer(same, 2, &alpha, &bandwidth, &residuals));
    ck_assert(!lh_fit_transfer(falling, 2, &alpha, &bandwidth, &residuals));
}
END_TEST

START_TEST(calibrate_statistics)
{
    double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };

    ck_assert_double_eq(lh_median(odd, 3), 2);
    ck_assert_double_eq(lh_median(even, 4), 2.5);
    ck_assert_double_eq(lh_statistic(LH_STATISTIC_BEST, even, 4), 1);
    ck_assert_double_eq(lh_statistic(LH_STATISTIC_MEDIAN, even, 4), 2.5);
    ck_assert_uint_ge(lh_cores_count(), 1);
}
END_TEST

/* ---- the file ---- */

static const LhKernelRate rate_written = {
    .kernel = (char *)"attention_fwd",
    .mask = 1,
    .head_dim = 64,
    .rate = 93.5e9,
    .half_length = 85.25,
    .query_half_length = 12.5,
    .from.provenance = LH_PROVENANCE_FITTED,
    .from.source = (char *)"a test",
    .residuals = { 0.01, 0.02, 0.03 },
};
static const LhKernelTraffic traffic_written = {
    .kernel = (char *)"merge",
    .bandwidth = 4.5e9,
    .from.provenance = LH_PROVENANCE_MEASURED,
    .from.source = (char *)"a test",
    .residuals = { 0.04, 0.05, 0.06 },
};

/* A profile as written by calibrate. */
static LhProfile *
write_and_read(void)
{
    g_autoptr(GArray) rates = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    g_autoptr(GArray) traffic = g_array_new(FALSE, FALSE, sizeof(LhKernelTraffic));
    LhCalibration c = {
        .machine = (char *)"a machine",
        .method = (char *)"a method",
        .device = { .kernels = g_array_append_vals(rates, &rate_written, 1),
                    .elementwise = g_array_append_vals(traffic, &traffic_written, 1),
                    .memory_bandwidth = 4.5e9,
                    .kernel_launch_ps = 70000,
                    .stream_sync_ps = 3500000,
                    .messages_hold = 0.25,
                    .machine_ranks = 4,
                    .machine_cores = 2 },
        .link = { .bandwidth = 22.5e9,
                  .latency_ps = 11500000,
                  .from.provenance = LH_PROVENANCE_FITTED,
                  .from.source = (char *)"a test" },
    };
    const LhCollectiveCheck check = { LH_COLL_REDUCE_SCATTER, 4, 65536, 0.0069, 0.007 };
    g_autoptr(GArray) checks = g_array_new(FALSE, FALSE, sizeof(check));
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;
    const int file = g_file_open_tmp("longhaul-XXXXXX.json", &path, NULL);
    LhProfile *profile;

    ck_assert_int_ge(file, 0);
    ck_assert(g_close(file, NULL));
    g_array_append_val(checks, check);
    c.checks = checks;
    lh_calibration_write(&c, "test", "2026-01-31", text);
    ck_assert(g_file_set_contents(path, text->str, (gssize)text->len, NULL));
    profile = lh_profile_load(path, &error);
    ck_assert_msg(profile != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_int_eq(g_remove(path), 0);
    return profile;
}

START_TEST(calibrate_profile_round_trip)
{
    g_autoptr(LhProfile) profile = write_and_read();
    const LhKernelRate *rate = &g_array_index(profile->device.kernels, LhKernelRate, 0);
    const LhKernelTraffic *traffic =
        &g_array_index(profile->device.elementwise, LhKernelTraffic, 0);
    const LhProfileCheck *check;

    ck_assert_str_eq(profile->name, "test");
    ck_assert_ptr_nonnull(strstr(profile->source, "a machine"));
    ck_assert_uint_eq(profile->device.kernels->len, 1);
    ck_assert_str_eq(rate->kernel, "attention_fwd");
    ck_assert_int_eq(rate->mask, 1);
    ck_assert_uint_eq(rate->head_dim, 64);
    ck_assert_double_eq(rate->rate, rate_written.rate);
    ck_assert_double_eq(rate->half_length, rate_written.half_length);
    ck_assert_double_eq(rate->query_half_length, rate_written.query_half_length);
    ck_assert_int_eq(rate->from.provenance, LH_PROVENANCE_FITTED);
    ck_assert_mem_eq(&rate->residuals, &rate_written.residuals, sizeof(rate->residuals));
    ck_assert_uint_eq(profile->device.elementwise->len, 1);
    ck_assert_str_eq(traffic->kernel, "merge");
    ck_assert_double_eq(traffic->bandwidth, traffic_written.bandwidth);
    ck_assert_mem_eq(&traffic->residuals, &traffic_written.residuals, sizeof(traffic->residuals));
    ck_assert_int_eq(profile->device.kernel_launch_ps, 70000);
    ck_assert_int_eq(profile->device.stream_sync_ps, 3500000);
    ck_assert_double_eq(profile->device.messages_hold, 0.25);
    ck_assert_uint_eq(profile->device.machine_ranks, 4);
    ck_assert_uint_eq(profile->device.machine_cores, 2);
    ck_assert_double_eq(profile->device.memory_bandwidth, 4.5e9);
    ck_assert_double_eq(profile->device.memory_efficiency, 1);
    ck_assert_int_eq(profile->device.memory_provenance, LH_PROVENANCE_MEASURED);
    ck_assert_uint_eq(profile->device.tile_rows, 0);
    ck_assert_double_eq(profile->pcie.bandwidth, 0);
    ck_assert_double_eq(profile->nvlink.bandwidth, 22.5e9);
    ck_assert_int_eq(profile->nvlink.latency_ps, 11500000);
    ck_assert_uint_eq(profile->nvlink.ctas, 0);
    ck_assert_uint_eq(profile->collective_checks->len, 1);
    check = &g_array_index(profile->collective_checks, LhProfileCheck, 0);
    ck_assert_int_eq(check->op, LH_COLL_REDUCE_SCATTER);
    ck_assert_uint_eq(check->ranks, 4);
    ck_assert_uint_eq(check->bytes, 65536);
    ck_assert_double_eq(check->measured_s, 0.0069);
    ck_assert_double_eq(check->predicted_s, 0.007);
}
END_TEST

/* Sharing of cores, from what each rank reports about its own. */
START_TEST(calibrate_ranks_share_cores)
{
    char a[] = "boot 0 1", b[] = "boot 2 3";
    char *const together[] = { a, a, a, a }, *const halves[] = { a, a, b, b };
    char *const in_turn[] = { a, b, a, b }, *const threes[] = { a, a, a, b };
    const struct {
        char *const *texts;
        uint32_t count, mine, cores;
        LhCoreSharing expected;
    } cases[] = {
        { together, 4, 3, 4, { 1, 0, 0, 0 } }, { together, 4, 0, 2, { 2, 0, 4, 2 } },
        { together, 4, 1, 2, { 2, 0, 4, 2 } }, { together, 4, 2, 2, { 2, 1, 4, 2 } },
        { together, 4, 3, 3, { 2, 1, 4, 3 } }, { together, 3, 2, 1, { 3, 2, 3, 1 } },
        { halves, 4, 3, 2, { 1, 0, 0, 0 } },   { halves, 4, 3, 1, { 2, 1, 2, 1 } },
        { in_turn, 4, 2, 1, { 1, 0, 0, 0 } },  { threes, 4, 2, 1, { 1, 0, 0, 0 } },
        { threes, 4, 3, 1, { 1, 0, 0, 0 } },   { together, 1, 0, 1, { 1, 0, 0, 0 } },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const LhCoreSharing found =
            lh_core_sharing_of(cases[i].texts, cases[i].count, cases[i].mine, cases[i].cores);

        ck_assert_msg(
            found.turns == cases[i].expected.turns && found.turn == cases[i].expected.turn &&
                found.ranks == cases[i].expected.ranks && found.cores == cases[i].expected.cores,
            "case %zu: turn %u of %u, %u ranks on %u cores", i, found.turn, found.turns,
            found.ranks, found.cores);
    }
}
END_TEST

/* The machine of a profile has fewer cores than ranks; otherwise none is given. */
START_TEST(calibrate_profile_machine_is_checked)
{
    static const struct {
        const char *fields, *message;
    } cases[] = {
        { "\"machine_ranks\": 4, \"machine_cores\": 2", NULL },
        { "\"machine_ranks\": 4", "go together" },
        { "\"machine_cores\": 4", "go together" },
        { "\"machine_ranks\": 4, \"machine_cores\": 4", "must be below" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf("{\"schema\": \"longhaul.profile/2\", \"name\": \"a\", "
                            "\"source\": \"a test\", %s}",
                            cases[i].fields);
        g_autoptr(LhTopology) topology = lh_topology_load("this-machine", NULL);
        g_autoptr(LhDevice) device = lh_device_load("this-cpu", NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(LhProfile) profile = lh_profile_parse("a.json", text, strlen(text), &error);

        ck_assert_msg(profile != NULL, "%s", error == NULL ? "" : error->message);
        ck_assert_int_eq(lh_profile_apply(profile, device, topology, &error),
                         cases[i].message == NULL);
        if (cases[i].message != NULL)
            ck_assert_msg(strstr(error->message, cases[i].message) != NULL, "%s", error->message);
    }
}
END_TEST

/* On the blank device a block takes exactly the time of the curve; a mask by position takes that of
 * a triangle with as many pairs. */
START_TEST(calibrate_profile_prices_ops)
{
    g_autoptr(LhProfile) profile = write_and_read();
    g_autoptr(LhTopology) topology = lh_topology_load("this-machine", NULL);
    g_autoptr(LhDevice) device = lh_device_load("this-cpu", NULL);
    const LhProgram program = { .params = { .attention = { .head_dim = 64 } } };
    LhOp op = { .kind = LH_OP_COMPUTE };
    LhKernelArgs *args = &op.compute.args;
    LhCost cost;

    ck_assert_str_eq(topology->device_name, "this-cpu");
    ck_assert(lh_profile_apply(profile, device, topology, NULL));
    ck_assert_double_eq(device->messages_hold, 0.25);
    ck_assert_uint_eq(device->machine_ranks, 4);
    ck_assert_uint_eq(device->machine_cores, 2);
    lh_cost_init(&cost, LH_COST_DEVICE, device);
    *args = (LhKernelArgs){ .pairs = 333 * 334 / 2,
                            .nq = 333,
                            .nk = 333,
                            .batch = 1,
                            .heads = 3,
                            .groups = 3,
                            .head_dim = 64,
                            .mask = LH_MASK_CAUSAL };
    op.compute.kernel = lh_kernel_find("attention_fwd");
    ck_assert_double_eq_tol(
        (double)lh_cost_compute(&cost, &program, &op, NULL),
        4.0 * 3 * 64 * (double)args->pairs / 93.5e9 * (1 + 85.25 / 333 + 12.5 / 333) * 1e12, 1);
    args->mask = LH_MASK_POSITIONS;
    args->nq = 100;
    args->nk = 200;
    args->pairs = 9000; /* of a triangle with 180 keys, 90 queries */
    ck_assert_double_eq_tol((double)lh_cost_compute(&cost, &program, &op, NULL),
                            4.0 * 3 * 64 * 9000 / 93.5e9 * (1 + 85.25 / 180 + 12.5 / 90) * 1e12, 1);
    ck_assert_int_eq(cost.provenance, LH_PROVENANCE_FITTED);
    *args = (LhKernelArgs){ .nq = 333, .batch = 1, .heads = 3, .groups = 3, .head_dim = 64 };
    op.compute.kernel = lh_kernel_find("merge");
    ck_assert_double_eq_tol(
        (double)lh_cost_compute(&cost, &program, &op, NULL),
        (double)lh_kernels[op.compute.kernel]->memory_bytes(args, 2) / 4.5e9 * 1e12, 1);
    lh_cost_clear(&cost);
}
END_TEST

/* ---- the machine ---- */

START_TEST(calibrate_measures)
{
    g_autofree unsigned char *flush = g_malloc0(2 * LH_MEASURE_FLUSH_BYTES);
    const LhMeasureParams params = { .repeats = 2, .threads = 2, .flush = flush };
    const LhKernelArgs args = { .pairs = 64 * 64,
                                .nq = 64,
                                .nk = 64,
                                .batch = 1,
                                .heads = 1,
                                .groups = 1,
                                .head_dim = 64,
                                .mask = LH_MASK_FULL };
    double seconds = 0, issue_s = -1, sync_s = -1;

    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        if (lh_kernels[k]->cost != LH_COST_ATTENTION)
            continue;
        ck_assert(lh_measure_kernel(&params, (LhKernelId)k, &args, LH_DTYPE_BF16, &seconds, NULL));
        ck_assert(seconds > 0 && seconds < 60);
    }
    ck_assert(lh_measure_host(&issue_s, &sync_s, NULL));
    ck_assert_double_ge(issue_s, 0);
    ck_assert_double_ge(sync_s, 0);
    ck_assert(lh_measure_transfer(1, &lh_backend_cpu, 4096, &seconds, NULL));
    ck_assert_double_gt(seconds, 0);
}
END_TEST

/* Another process that echoes this one's data with a clock one second ahead; it stops answering
 * after *@control calls. */
static bool
share_with_another(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                   GError **error)
{
    int *answers = control;
    g_autofree LhClockRound *rounds = g_memdup2(bytes->data, bytes->len);

    if (*answers == 0) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME, "rank 1 does not answer");
        return false;
    }
    (*answers)--;
    for (size_t i = 0; i < bytes->len / sizeof(LhClockRound); i++) {
        rounds[i].sent_ns += NS_PER_S;
        rounds[i].received_ns += NS_PER_S;
    }
    g_byte_array_append(all, bytes->data, bytes->len);
    g_byte_array_append(all, (const guint8 *)rounds, bytes->len);
    ck_assert_uint_le(bytes->len, limit);
    return true;
}

static bool
meet_another(void *control, GError **error)
{
    g_autoptr(GByteArray) nothing = g_byte_array_new();

    return share_with_another(control, nothing, 0, nothing, error);
}

START_TEST(calibrate_calls_with_other_processes)
{
    const LhControl table = { .name = "another",
                              .barrier = meet_another,
                              .share = share_with_another };
    int answers = 1000;
    const LhOpenControl control = { .table = &table, .state = &answers };
    g_autofree unsigned char *flush = g_malloc0(LH_MEASURE_FLUSH_BYTES);
    const LhMeasureParams params = {
        .repeats = 3, .threads = 1, .others = &control, .flush = flush
    };
    const LhKernelArgs args = lh_calibrate_attention_args(16, false, 1, 64);
    double seconds = 0;

    ck_assert(
        lh_measure_kernel(&params, LH_KERNEL_ID_attention, &args, LH_DTYPE_BF16, &seconds, NULL));
    ck_assert(seconds > 0 && seconds < 60);
    ck_assert_int_eq(answers, 1000 - 3 * (LH_CLOCK_ROUNDS + 2));
    for (uint32_t turn = 0; turn < 2;
         turn++) { /* the other process also synchronises in its turn */
        LhMeasureParams in_turn = params;

        answers = 1000;
        in_turn.turns = 2;
        in_turn.turn = turn;
        ck_assert(lh_measure_kernel(&in_turn, LH_KERNEL_ID_attention, &args, LH_DTYPE_BF16,
                                    &seconds, NULL));
        ck_assert(seconds > 0 && seconds < 60);
        ck_assert_int_eq(answers, 1000 - 2 * 3 * (LH_CLOCK_ROUNDS + 2));
    }
    for (int until = 0; until < 3 * (LH_CLOCK_ROUNDS + 2); until++) {
        g_autoptr(GError) error = NULL;

        answers = until;
        ck_assert(!lh_measure_kernel(&params, LH_KERNEL_ID_attention, &args, LH_DTYPE_BF16,
                                     &seconds, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME));
        ck_assert_str_eq(error->message, "rank 1 does not answer");
    }
}
END_TEST

#ifdef __linux__
/* Scheduling slice of the calling thread; 0 if the system does not report it or uses another
 * policy. */
static uint64_t
slice_ns(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = { .size = sizeof(attributes) };
    const long status = syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0);

    return status == 0 && attributes.policy == SCHED_OTHER ? attributes.runtime : 0;
}

START_TEST(threads_that_wake_promptly_have_a_short_slice)
{
    const uint64_t before_ns = slice_ns();

    ck_assert_uint_eq(lh_wake_promptly(), before_ns);
    ck_assert_uint_eq(slice_ns(), before_ns == 0 ? 0 : 100000);
    lh_wake_as_before(before_ns);
    ck_assert_uint_eq(slice_ns(), before_ns);
}
END_TEST

START_TEST(runs_leave_the_slice_of_their_caller)
{
    const uint64_t before_ns = slice_ns();
    double seconds;

    ck_assert(lh_measure_transfer(1, &lh_backend_cpu, 4096, &seconds, NULL));
    ck_assert_uint_eq(slice_ns(), before_ns);
}
END_TEST
#define LINUX_TESTS                                                                                \
    , threads_that_wake_promptly_have_a_short_slice, runs_leave_the_slice_of_their_caller
#else
#define LINUX_TESTS
#endif

/* Kernels of 10 us alone: beside a message of its own rank a kernel loses its slowdown over the
 * time the message was in flight. */
START_TEST(interference_is_what_kernels_take_longer)
{
    const struct {
        uint32_t rank;
        LhOpKind kind;
        LhTime start_us, end_us;
    } ops[] = {
        { 0, LH_OP_COMPUTE, 0, 10 }, /* alone: the exchange is another rank's */
        { 1, LH_OP_EXCHANGE, 0, 10 },   { 0, LH_OP_COMPUTE, 20, 40 }, /* fully overlapped: 1/2 */
        { 0, LH_OP_EXCHANGE, 15, 45 },  { 1, LH_OP_COMPUTE, 20, 32 }, /* 2 of 8 us: 1/4 */
        { 1, LH_OP_EXCHANGE, 24, 50 },  { 1, LH_OP_COMPUTE, 60, 70 }, /* alone */
        { 1, LH_OP_COMPUTE, 80, 100 },                                /* overlap too short to use */
        { 1, LH_OP_EXCHANGE, 99, 120 },
    };
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));

    ck_assert_double_eq(lh_interference_share(records), -1);
    for (gsize i = 0; i < G_N_ELEMENTS(ops); i++) {
        const LhTimelineRecord r = { .rank = ops[i].rank,
                                     .kind = (uint8_t)ops[i].kind,
                                     .kernel = lh_kernel_find("attention_block"),
                                     .start_ps = ops[i].start_us * 1000000,
                                     .end_ps = ops[i].end_us * 1000000 };

        g_array_append_val(records, r);
    }
    ck_assert_double_eq_tol(lh_interference_share(records), (0.5 + 0.25) / 2, 1e-12);
}
END_TEST

/* Measured with threads: the value is unknown, but it is a share. */
START_TEST(interference_is_measured)
{
    const LhInterference probe = { .backend = &lh_backend_cpu,
                                   .ranks = 2,
                                   .tokens = 64,
                                   .heads = 2,
                                   .head_dim = 32,
                                   .dtype = LH_DTYPE_BF16,
                                   .deadline_us = 60000000 };
    const LhInterference none = { .backend = &lh_backend_cpu, .ranks = 2, .tokens = 0 };
    GError *error = NULL;
    double held = 2;

    ck_assert(lh_measure_interference(&probe, &held, NULL));
    ck_assert(held == -1 || (held >= 0 && held <= 1));
    ck_assert(!lh_measure_interference(&none, &held, &error));
    ck_assert_ptr_nonnull(error);
    g_error_free(error);
}
END_TEST

/* Of three ranks, two take part, or all three. */
START_TEST(collectives_are_measured)
{
    for (unsigned i = 0; i < 2 * LH_COLL_KINDS; i++) {
        const LhCollectiveProbe probe = { .backend = &lh_backend_cpu,
                                          .way = LH_WAY_DIRECT,
                                          .ranks = 3,
                                          .kind = (LhCollectiveKind)(i / 2),
                                          .members = 2 + i % 2,
                                          .shard_bytes = 4096 };
        double seconds = 0;

        ck_assert(lh_measure_collective(&probe, &seconds, NULL));
        ck_assert_double_gt(seconds, 0);
        ck_assert_double_lt(seconds, 60);
    }
}
END_TEST

/* Rounds follow one another, the first takes longest, and a round ends with its last member. */
START_TEST(collectives_take_what_their_last_member_takes)
{
    const LhCollectiveProbe probe = { .ranks = 3, .members = 2 };
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));

    for (uint32_t rank = 0; rank < 2; rank++) {
        for (uint32_t round = 0; round < 6; round++) {
            const LhTime end_ps = (round + 1) * LH_PS_PER_S + (round == 0 ? LH_PS_PER_S / 2 : 0);
            const LhTimelineRecord r = { .rank = rank,
                                         .op = round,
                                         .start_ps = round * LH_PS_PER_S + rank * LH_PS_PER_S / 4,
                                         .end_ps = end_ps - (rank == 1 ? LH_PS_PER_S / 8 : 0) };

            g_array_append_val(records, r);
        }
    }
    ck_assert_double_eq(lh_collective_seconds(&probe, records), 0.75);
}
END_TEST

/* For calls that no curve fits exactly, the sum of squares is minimal: it grows in both
 * directions. */
START_TEST(calibrate_calls_have_least_squares)
{
    enum { POINTS = 7 };
    g_autoptr(LhDevice) device = lh_device_load("this-cpu", NULL);
    LhKernelRate curve = { .rate = 1 }, beside;
    LhCallPoint points[POINTS];
    LhResiduals residuals;
    double sums[3] = { 0 };

    for (unsigned i = 0; i < POINTS; i++)
        points[i] = (LhCallPoint){ .args = lh_calibrate_attention_args(64U << i, false, 1, 64),
                                   .seconds = point(64U << i, 0.3 * noise(i)).seconds };
    ck_assert(lh_fit_calls(device, LH_KERNEL_ID_attention_fwd, points, POINTS, &curve, &residuals));
    for (unsigned k = 0; k < 3; k++) {
        beside = curve;
        beside.rate *= 0.99 + 0.01 * k;
        for (unsigned i = 0; i < POINTS; i++)
            sums[k] += pow(
                lh_cost_curve_call(device, &beside, LH_KERNEL_ID_attention_fwd, &points[i].args) /
                        points[i].seconds -
                    1,
                2);
    }
    ck_assert_double_lt(sums[1], sums[0]);
    ck_assert_double_lt(sums[1], sums[2]);
}
END_TEST

LH_TEST_MAIN("calibrate", calibrate_rate_is_recovered, calibrate_rate_of_rectangles,
             calibrate_no_length_is_negative, calibrate_holdout_is_judged_only,
             calibrate_rate_edges, calibrate_no_rate_is_above_the_peak,
             calibrate_transfer_stands_outliers, calibrate_transfer_edges,
             calibrate_calls_have_least_squares, calibrate_statistics, calibrate_profile_round_trip,
             calibrate_profile_prices_ops, calibrate_ranks_share_cores,
             calibrate_profile_machine_is_checked, calibrate_measures,
             interference_is_what_kernels_take_longer, interference_is_measured,
             collectives_are_measured, collectives_take_what_their_last_member_takes,
             calibrate_calls_with_other_processes LINUX_TESTS)
