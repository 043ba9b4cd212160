/*
 * Whether calibrate finds the truth, where it is known: the virtual clock of what stands for GPUs
 * has constants of its own. Nothing is computed, only time passes.
 */
#include "plan/calibrate.h"
#include "run_tests.h"
#include "sim/attention_cost.h"
#include "standin.h"
#include "standin_calls.h"

#include <math.h>
#include <string.h>

#define RANKS 4
#define SMS 132 /* of the cluster's device, and its tiles below */
#define ROWS 128
#define COLUMNS 64
#define WITHIN 0.01

/* ---- the world ---- */

/* What everything takes in it. */
typedef struct {
    double fwd_rate, bwd_rate;                 /* flop/s of all SMs */
    double fwd_prologue, bwd_prologue;         /* blocks */
    double traffic;                            /* bytes/s of elementwise kernels; nocheck:unit */
    double latency_s, bandwidth;               /* of messages; nocheck:unit */
    double collective_s, collective_bandwidth; /* nocheck:unit */
    double launch_s, record_s, wait_s, group_s;
    double held; /* SMs, by messages */
} World;

static const World usual = {
    .fwd_rate = 600e12,
    .bwd_rate = 450e12,
    .fwd_prologue = 1.5,
    .bwd_prologue = 3,
    .traffic = 2.4e12,
    .latency_s = 12e-6,
    .bandwidth = 300e9,
    .collective_s = 20e-6,
    .collective_bandwidth = 200e9,
    .launch_s = 3e-6,
    .record_s = 1e-6,
    .wait_s = 0.5e-6,
    .group_s = 2e-6,
    .held = 20,
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

/* Of one call, alone on its GPU. */
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

    for (guint i = 0; i < c->rates->len; i++) {
        const LhKernelRate *rate = &g_array_index(c->rates, LhKernelRate, i);
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
    for (guint i = 0; i < c->traffic->len; i++)
        is_near(g_array_index(c->traffic, LhKernelTraffic, i).kernel,
                g_array_index(c->traffic, LhKernelTraffic, i).bandwidth, usual.traffic);
    ck_assert_uint_gt(c->traffic->len, 4);
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

LH_TEST_MAIN("truth", constants_are_found, constants_of_one_gpu_are_found)
