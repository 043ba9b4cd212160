/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether calibrate and validate recover known constants: the stand-in's virtual clock has
 * constants of its own. Nothing is computed; only time passes.
 */
#include "calibrate/calibrate.h"
#include "calibrate/calibration_profile.h"
#include "run_tests.h"
#include "sim/cost/attention_cost.h"
#include "standin.h"
#include "standin_calls.h"
#include "validate/validate.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define RANKS 4
#define SMS 132 /* of the cluster's device; its tiles follow */
#define ROWS 128
#define COLUMNS 64
#define WITHIN 0.01

/* ---- the world ---- */

/* The constants of the world. */
typedef struct {
    double fwd_rate, bwd_rate;                 /* flop/s of all SMs */
    double fwd_prologue, bwd_prologue;         /* blocks */
    double traffic;                            /* bytes/s of elementwise kernels; nocheck:unit */
    double latency_s, bandwidth;               /* of messages; nocheck:unit */
    double collective_s, collective_bandwidth; /* nocheck:unit */
    double launch_s, record_s, wait_s, group_s;
    double held; /* SMs held by messages */
} World;

/* Slow rates: host times are small beside them, and messages take about as long as kernels. */
static const World usual = {
    .fwd_rate = 6e12,
    .bwd_rate = 4.5e12,
    .fwd_prologue = 1.5,
    .bwd_prologue = 3,
    .traffic = 240e9,
    .latency_s = 4e-3,
    .bandwidth = 2e9,
    .collective_s = 20e-6,
    .collective_bandwidth = 200e9,
    .launch_s = 3e-6,
    .record_s = 1e-6,
    .wait_s = 0.5e-6,
    .group_s = 2e-6,
    .held = 40,
};

static World world;

static double
attention_seconds(const LhKernelArgs *args, bool bwd)
{
    const double rate = bwd ? world.bwd_rate : world.fwd_rate;
    const LhAttentionRow row = { .direction = bwd ? LH_ATTENTION_BWD : LH_ATTENTION_FWD,
                                 .tiling = { .rows = ROWS,
                                             .columns = COLUMNS,
                                             .of_keys = bwd,
                                             .order = LH_TILES_LONGEST_FIRST,
                                             .prologue =
                                                 bwd ? world.bwd_prologue : world.fwd_prologue },
                                 .rate = rate,
                                 .sustained_rate = rate };

    return lh_attention_load(&row, SMS, args, 1, 1, false).flops / rate;
}

/* Of one call that has its GPU to itself. */
static double
call_seconds(LhKernelId id, const LhKernelArgs *args)
{
    const LhKernel *kernel = lh_kernels[id];

    if (kernel->effect == LH_EFFECT_ATTEND || kernel->effect == LH_EFFECT_ATTEND_GRAD)
        return attention_seconds(args, kernel->effect == LH_EFFECT_ATTEND_GRAD);
    if (kernel->cost == LH_COST_MEMORY)
        return (double)kernel->memory_bytes(args, 2) / world.traffic;
    return 1e-6;
}

static void
begin_world(const World *w)
{
    const StandinOptions options = { .seed = 5, .devices = RANKS, .eager = 10 };
    const StandinTimes times = {
        .message_s = w->latency_s,
        .message_bytes_per_s = w->bandwidth,
        .collective_s = w->collective_s,
        .collective_bytes_per_s = w->collective_bandwidth,
        .call_s = { [STANDIN_LAUNCH] = w->launch_s,
                    [STANDIN_RECORD] = w->record_s,
                    [STANDIN_WAIT] = w->wait_s,
                    [STANDIN_GROUP] = w->group_s },
        .fill_bytes_per_s = 2e12,
        .held = w->held / SMS,
        .idle = true,
    };

    world = *w;
    standin_call_seconds = call_seconds;
    standin_times(&times);
    standin_start(&options);
}

static void
end_world(void)
{
    standin_end();
    ck_assert_str_eq(standin_findings(), "");
}

/* ---- calibrating ---- */

static LhCalibration *
calibrate(const LhBackend *backend)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = lh_topology_load("hgx-h100", &error);
    g_autoptr(LhDevice) device = lh_device_load(topology->device_name, &error);
    const LhCalibrateParams params = { .backend = backend,
                                       .measure = { .repeats = 2 },
                                       .quick = true,
                                       .dtype = LH_DTYPE_BF16,
                                       .topology = topology,
                                       .device = device,
                                       .ranks = backend == &lh_backend_nccl ? RANKS : 1 };
    LhCalibration *c = lh_calibrate(&params, &error);

    ck_assert_msg(c != NULL, "%s\n%s", error != NULL ? error->message : "", standin_findings());
    return c;
}

static void
is_near(const char *what, double found, double truth)
{
    ck_assert_msg(fabs(found / truth - 1) <= WITHIN, "%s: %g found, %g planted", what, found,
                  truth);
}

static void
check_rates(const LhCalibration *c)
{
    guint found = 0;

    for (guint i = 0; i < c->device.kernels->len; i++) {
        const LhKernelRate *rate = &g_array_index(c->device.kernels, LhKernelRate, i);
        const LhEffect effect = lh_kernels[lh_kernel_find(rate->kernel)]->effect;
        const bool bwd = effect == LH_EFFECT_ATTEND_GRAD;
        const double prologue = bwd ? usual.bwd_prologue : usual.fwd_prologue;

        if (!bwd && effect != LH_EFFECT_ATTEND)
            continue;
        found++;
        is_near(rate->kernel, rate->rate, bwd ? usual.bwd_rate : usual.fwd_rate);
        is_near(rate->kernel, rate->half_length,
                rate->mask == 1 ? 2 * prologue * COLUMNS + ROWS : prologue * COLUMNS);
        ck_assert_double_le(rate->residuals.worst, WITHIN);
        ck_assert_double_le(rate->residuals.holdout, WITHIN);
    }
    ck_assert_uint_gt(found, 4);
    for (guint i = 0; i < c->device.elementwise->len; i++)
        is_near(g_array_index(c->device.elementwise, LhKernelTraffic, i).kernel,
                g_array_index(c->device.elementwise, LhKernelTraffic, i).bandwidth, usual.traffic);
    ck_assert_uint_gt(c->device.elementwise->len, 4);
}

static void
check_calls(const LhCalibration *c, bool groups)
{
    is_near("an op", c->calls.op, 2 * usual.record_s);
    is_near("a kernel", c->calls.compute, 2 * usual.record_s + usual.launch_s);
    is_near("a wait", c->calls.wait, usual.wait_s);
    is_near("a sync", c->calls.sync, usual.record_s);
    if (groups)
        is_near("a group", c->calls.group, 2 * usual.record_s + usual.group_s);
}

static void
check_collectives(const LhCalibration *c)
{
    unsigned kinds = 0;

    for (guint i = 0; i < c->collectives->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(c->collectives, LhCollectiveTimes, i);

        for (guint k = 0; row->op == LH_COLL_ALL_GATHER && k < row->us->len; k++) {
            const double shard =
                (double)g_array_index(row->bytes, uint64_t, k) / (double)row->ranks;

            is_near("all-gather", g_array_index(row->us, double, k) / 1e6,
                    usual.collective_s + shard / usual.collective_bandwidth);
        }
        kinds |= 1u << row->op;
    }
    ck_assert_uint_eq(kinds, (1u << LH_COLL_KINDS) - 1);
}

START_TEST(constants_are_found)
{
    g_autoptr(LhCalibration) c = NULL;

    begin_world(&usual);
    c = calibrate(&lh_backend_nccl);
    end_world();
    check_rates(c);
    check_calls(c, true);
    is_near("latency", (double)c->link.latency_ps / LH_PS_PER_S, usual.latency_s);
    is_near("bandwidth", c->link.bandwidth, usual.bandwidth);
    ck_assert_uint_eq(c->link.ctas, (uint64_t)usual.held);
    check_collectives(c);
}
END_TEST

START_TEST(constants_of_one_gpu_are_found)
{
    g_autoptr(LhCalibration) c = NULL;

    begin_world(&usual);
    c = calibrate(&lh_backend_cuda);
    end_world();
    check_rates(c);
    check_calls(c, false);
    ck_assert_double_eq(c->link.bandwidth, 0);
}
END_TEST

/* ---- validating ---- */

/* Writes the profile of the usual world to a file. Caller frees. */
static char *
write_profile(const LhCalibration *c)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char *path = g_strdup_printf("%s/truth-%d.json", g_get_tmp_dir(), (int)getpid());

    lh_calibration_write(c, "truth", "2026-01-01", text);
    ck_assert(g_file_set_contents(path, text->str, (gssize)text->len, NULL));
    return path;
}

static LhValidated *
validate(const char *profile)
{
    static const char *const schedules[] = { "ring", "zigzag" };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    const LhValidateParams params = { .backend = &lh_backend_nccl, .repeat = 1 };
    LhValidated *validated;

    scenario->cluster = g_strdup("hgx-h100");
    scenario->profile = g_strdup(profile);
    scenario->ranks = RANKS;
    scenario->seq_length = 8192;
    scenario->num_attention_heads = scenario->num_query_groups = 16;
    scenario->kv_channels = 128;
    scenario->network = LH_NETWORK_ALPHA_BETA;
    scenario->collectives = LH_COLLECTIVES_DIRECT;
    scenario->schedule = g_ptr_array_new_with_free_func(g_free);
    for (gsize i = 0; i < G_N_ELEMENTS(schedules); i++)
        g_ptr_array_add(scenario->schedule, g_strdup(schedules[i]));
    setup = lh_setup_new(scenario, &error);
    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
    validated = lh_validate(setup, &params, &error);
    ck_assert_msg(validated != NULL, "%s\n%s", error != NULL ? error->message : "",
                  standin_findings());
    return validated;
}

static double
worst_error(const LhValidated *validated)
{
    double worst = 0;

    for (guint i = 0; i < validated->rows->len; i++) {
        const LhValidation *v = g_ptr_array_index(validated->rows, i);

        ck_assert_msg(v->refused == NULL, "%s: %s", v->schedule, v->refused);
        worst = fmax(worst, fabs(lh_validation_error(v)));
    }
    return worst;
}

/* Validates in a world where one constant is a fifth larger or smaller than in the profile. */
static void
check_changed(const char *profile, const World *changed, LhAttributionClass class, double scale)
{
    const char *name = lh_attribution_names[class];
    g_autoptr(LhValidated) v = NULL;
    const LhAttributed *e;

    begin_world(changed);
    v = validate(profile);
    end_world();
    e = v->explained;
    ck_assert_msg(worst_error(v) > WITHIN, "%s: error of %.2f %%", name, 100 * worst_error(v));
    ck_assert_msg(e->best == (int)class, "%s: attributed to %s (%.4f, with it %.4f; %.4f)", name,
                  e->best < 0 ? "nothing" : lh_attribution_names[e->best], e->error,
                  e->best < 0 ? 0 : e->classes[e->best].error, e->classes[class].error);
    ck_assert_msg(fabs(e->classes[class].scale / scale - 1) < 0.05, "%s: scale %g, planted %g",
                  name, e->classes[class].scale, scale);
}

START_TEST(what_is_off_is_named)
{
    g_autoptr(LhCalibration) c = NULL;
    g_autoptr(LhValidated) v = NULL;
    g_autofree char *profile = NULL;
    World changed[LH_ATTRIBUTION_CLASSES];

    begin_world(&usual);
    c = calibrate(&lh_backend_nccl);
    profile = write_profile(c);
    end_world();
    begin_world(&usual);
    v = validate(profile);
    end_world();
    ck_assert_msg(worst_error(v) < WITHIN, "error of %.2f %%", 100 * worst_error(v));
    for (int i = 0; i < LH_ATTRIBUTION_CLASSES; i++)
        changed[i] = usual;
    changed[LH_ATTRIBUTION_KERNELS].fwd_rate /= 1.2;
    changed[LH_ATTRIBUTION_KERNELS].bwd_rate /= 1.2;
    changed[LH_ATTRIBUTION_KERNELS].traffic /= 1.2;
    check_changed(profile, &changed[LH_ATTRIBUTION_KERNELS], LH_ATTRIBUTION_KERNELS, 1.2);
    changed[LH_ATTRIBUTION_LATENCY].latency_s *= 1.2;
    check_changed(profile, &changed[LH_ATTRIBUTION_LATENCY], LH_ATTRIBUTION_LATENCY, 1.2);
    changed[LH_ATTRIBUTION_BANDWIDTH].bandwidth /= 1.2;
    check_changed(profile, &changed[LH_ATTRIBUTION_BANDWIDTH], LH_ATTRIBUTION_BANDWIDTH, 1.2);
    changed[LH_ATTRIBUTION_INTERFERENCE].held *= 1.2;
    check_changed(profile, &changed[LH_ATTRIBUTION_INTERFERENCE], LH_ATTRIBUTION_INTERFERENCE, 1.2);
    g_unlink(profile);
}
END_TEST

LH_TEST_MAIN("truth", constants_are_found, constants_of_one_gpu_are_found, what_is_off_is_named)
