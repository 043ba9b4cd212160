/*
 * The simulator against what can be known without it: the idle fractions of the papers as exact
 * rationals, bytes, flops and memory in closed form, two-rank programs to the picosecond, and rules
 * that hold for every schedule on every cluster.
 */
#include "sim/sim.h"

#include "base/error.h"
#include "run_tests.h"
#include "sim/cost.h"
#include "sim_world.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

__extension__ typedef unsigned __int128 Wide;

static const char *const schedule_names[] = { "ring", "zigzag", "striped", "dfa-unbalanced",
                                              "dfa-balanced" };
static const uint32_t some_ranks[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                       12, 13, 14, 15, 16, 24, 25, 32, 33, 64 };

/* ---- programs of the schedules ---- */

/* 4 h d = 2000: a pair takes 2 ps forward and 5 ps backward where flops count alone. */
#define HEADS 4
#define HEAD_DIM 125

static LhProgram *
schedule(const char *name, const LhProgramParams *params)
{
    g_autoptr(GError) error = NULL;
    const LhSchedule *found = lh_schedule_find(name, &error);
    LhProgram *program = found != NULL ? lh_program_new(found, params, &error) : NULL;

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    return program;
}

static bool
is_named(const char *name, const char *other)
{
    return strcmp(name, other) == 0;
}

/* ---- idle fractions ---- */

typedef struct {
    Wide idle, all; /* idle / all */
} Fraction;

/* Pairs of the rank that has most, in one pass: what the makespan is where flops count alone. */
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
    params.overlap = overlap;
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

/* What the formulas above tend to, and what they are at a few points, in other words. */
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

/* The papers' own numbers at 8 GPUs: 28 of 64 and 4 of 40 slots idle, speedups 4.5 and 7.2. */
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

/* The formulas of the schedules in units of bytes; see docs/schedules.md. */
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
    const uint64_t dead = p->published_code && r + 2 <= half ? 1 : 0;
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
    const LhSchedule *found = lh_schedule_find(name, NULL);
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
        ck_assert_uint_eq(rank->bytes_sent, found->closed.bytes_sent(params, r));
        ck_assert_uint_eq(rank->bytes_sent, recorded[r]);
        ck_assert_uint_eq(rank->flops, found->closed.flops(params, r));
        ck_assert_uint_eq(rank->peak_bytes, found->closed.peak_bytes(params, r));
        for (uint32_t kind = 0; kind < LH_TENSOR_KINDS; kind++)
            memory += rank->peak_by_tensor[kind];
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
                    params.published_code = true;
                    check_counts(schedule_names[i], &params);
                }
}
END_TEST

/* What leaves a node crosses a link up and a link down of every tier on its way. */
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
        ck_assert_uint_eq(result->link_bytes[LH_TIER_NVLINK], 2 * inside);
        ck_assert_uint_eq(result->link_bytes[LH_TIER_PCIE], 2 * between);
        ck_assert_uint_eq(result->link_bytes[LH_TIER_NIC], 2 * between);
        ck_assert_double_le(result->busiest_link_utilisation, 1 + 1e-9);
        ck_assert_double_gt(result->busiest_link_utilisation, 0);
        world_clear(&w);
    }
}
END_TEST

/* ---- one device ---- */

/* Kernel times of a rank's program, one after another. */
static LhTime
kernel_time(const World *w, uint32_t rank, uint32_t *launches)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    LhTime sum = 0;
    LhCost cost;

    *launches = 0;
    lh_cost_init(&cost, w->params.cost, &w->device, w->program);
    lh_cursor_init(&cursor, w->program, rank);
    while (lh_cursor_step(&cursor, &buffer))
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            *launches += buffer.ops[i].kind <= LH_OP_COLLECTIVE;
            if (buffer.ops[i].kind == LH_OP_COMPUTE)
                sum += lh_cost_compute(&cost, &buffer.ops[i], NULL);
        }
    lh_op_buffer_clear(&buffer);
    return sum;
}

START_TEST(sim_one_rank_costs_one_device)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++) {
        const LhProgramParams params = attention(1, 16384, 32, 8, 128);
        g_autoptr(LhSimResult) result = NULL;
        uint32_t launches;
        World w;

        world_init(&w, "single-gpu", schedule(schedule_names[i], &params));
        result = world_run(&w);
        ck_assert_int_eq(result->makespan_ps, kernel_time(&w, 0, &launches));
        ck_assert_int_eq(result->ranks[0].busy_ps, result->makespan_ps);
        ck_assert_uint_eq(result->ranks[0].bytes_sent, 0);
        ck_assert_uint_eq(result->busiest_link, UINT32_MAX);
        world_clear(&w);
    }
}
END_TEST

/* 32 heads of 128. */
static LhKernelArgs
block(uint64_t nq, uint64_t nk, uint64_t pairs, LhMaskKind mask)
{
    return (LhKernelArgs){ .pairs = pairs,
                           .nq = nq,
                           .nk = nk,
                           .batch = 1,
                           .heads = 32,
                           .groups = 32,
                           .head_dim = 128,
                           .mask = (uint8_t)mask };
}

static LhTime
cost_by(LhCostMode mode, const LhDevice *device, LhKernelId kernel, const LhKernelArgs *args,
        LhProvenance *provenance)
{
    const LhProgram program = { .params = attention(1, 16384, 32, 32, 128) };
    const LhOp op = { .kind = LH_OP_COMPUTE, .compute = { .kernel = kernel, .args = *args } };
    LhCost cost;
    LhTime time;

    lh_cost_init(&cost, mode, device, &program);
    time = lh_cost_compute(&cost, &op, NULL);
    *provenance = cost.provenance;
    return time;
}

static LhTime
cost_of(const LhDevice *device, LhKernelId kernel, uint64_t nk, LhProvenance *provenance)
{
    const LhKernelArgs args = block(16384, nk, lh_causal_pairs(16384, nk, 0), LH_MASK_CAUSAL);

    return cost_by(LH_COST_DEVICE, device, kernel, &args, provenance);
}

/* 16384 causal tokens, 32 heads of 128: a curve and whole waves of 108 SMs, or the roofline; memory
 * traffic. */
START_TEST(sim_kernel_times_are_the_formulas)
{
    const LhKernelRate curve = { .kernel = (char *)"attention_fwd",
                                 .mask = 1,
                                 .head_dim = 128,
                                 .rate = 200e12,
                                 .half_length = 500,
                                 .provenance = LH_PROVENANCE_MEASURED };
    g_autoptr(GArray) curves = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    const LhDevice device = { .matrix_rate = 300e12,
                              .memory_bandwidth = 2e12,
                              .memory_efficiency = 0.75,
                              .memory_provenance = LH_PROVENANCE_FITTED,
                              .sm_count = 108,
                              .tile_rows = 128,
                              .kernels = curves };
    const double n = 16384, rows = n * 32, q = rows * 128 * 2;
    const double flops = 4 * 32 * 128 * (n * (n + 1) / 2);
    const double tiles = 128 * 32, waves = ceil(tiles / 108) * 108 / tiles;
    LhProvenance provenance;

    /* normalise reads o (fp32), m, l and writes o, lse */
    ck_assert_double_eq_tol((double)cost_of(&device, LH_KERNEL_ID_normalise, 0, &provenance),
                            (2 * q + q + 3 * 4 * rows) / (2e12 * 0.75) * 1e12, 1);
    ck_assert_int_eq(provenance, LH_PROVENANCE_FITTED);
    ck_assert_double_eq_tol(
        (double)cost_of(&device, LH_KERNEL_ID_attention_fwd, 16384, &provenance),
        flops / 300e12 * 1e12, 1);
    ck_assert_int_eq(provenance, LH_PROVENANCE_DATASHEET);
    g_array_append_val(curves, curve);
    ck_assert_double_eq_tol(
        (double)cost_of(&device, LH_KERNEL_ID_attention_fwd, 16384, &provenance),
        flops / 200e12 * (1 + 500 / n) * waves * 1e12, 1);
    ck_assert_int_eq(provenance, LH_PROVENANCE_MEASURED);
}
END_TEST

/*
 * Pairs by position: a whole rectangle is a full block and a triangle a causal one; strips of
 * Attention2D, half full, are triangles; a window of 512 in 64K keys is timed as one of 512.
 */
START_TEST(sim_kernels_by_position_take_their_curve)
{
    const uint64_t n = 16384, triangle = n * (n + 1) / 2, half = n * n / 2, most = n * n * 4 / 5;
    const LhKernelArgs full = block(n, n, n * n, LH_MASK_FULL),
                       causal = block(n, n, triangle, LH_MASK_CAUSAL);
    const struct {
        LhKernelArgs args;
        double rate, keys, half_length;
    } cases[] = {
        { block(n, n, n * n, LH_MASK_POSITIONS), 300e12, 16384, 100 },
        { block(n, n, most, LH_MASK_POSITIONS), 300e12, 16384 * 0.8, 100 },
        { block(n, n, triangle, LH_MASK_POSITIONS), 200e12, 16384, 500 },
        { block(n, n, half, LH_MASK_POSITIONS), 200e12, 16384, 500 },
        { block(n, 4 * n, 512 * n, LH_MASK_POSITIONS), 200e12, 1024, 500 },
    };
    const LhKernelRate curves[] = { { .kernel = (char *)"attention_fwd",
                                      .mask = 0,
                                      .head_dim = 128,
                                      .rate = 300e12,
                                      .half_length = 100 },
                                    { .kernel = (char *)"attention_fwd",
                                      .mask = 1,
                                      .head_dim = 128,
                                      .rate = 200e12,
                                      .half_length = 500 } };
    g_autoptr(GArray) kernels = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    const LhDevice device = {
        .matrix_rate = 400e12, .sm_count = 1, .tile_rows = 1, .kernels = kernels
    };
    const LhKernelId fwd = LH_KERNEL_ID_attention_fwd;
    LhProvenance p;

    g_array_append_vals(kernels, curves, 2);
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const double flops = 4.0 * 32 * 128 * (double)cases[i].args.pairs;

        ck_assert_double_eq_tol(
            (double)cost_by(LH_COST_DEVICE, &device, fwd, &cases[i].args, &p),
            flops / cases[i].rate * (1 + cases[i].half_length / cases[i].keys) * 1e12, 2);
    }
    ck_assert_int_eq(cost_by(LH_COST_DEVICE, &device, fwd, &full, &p),
                     cost_by(LH_COST_DEVICE, &device, fwd, &cases[0].args, &p));
    ck_assert_int_eq(cost_by(LH_COST_DEVICE, &device, fwd, &causal, &p),
                     cost_by(LH_COST_DEVICE, &device, fwd, &cases[2].args, &p));
}
END_TEST

/* Matrix products of linear attention: 30 % of the peak in whole waves, an assumption, whatever
 * attention's curves say; a curve of their own goes before. */
START_TEST(sim_matrix_products_run_at_a_share_of_the_peak)
{
    const LhKernelRate curve = { .kernel = (char *)"linear_intra",
                                 .mask = 1,
                                 .head_dim = 128,
                                 .rate = 90e12,
                                 .half_length = 64,
                                 .provenance = LH_PROVENANCE_MEASURED };
    g_autoptr(LhDevice) device = lh_device_load("a100-sxm-80g", NULL);
    const uint64_t n = 4096;
    const LhKernelArgs args = block(n, n, n * (n + 1) / 2, LH_MASK_CAUSAL);
    const LhKernelArgs all = block(n, n, n * n, LH_MASK_FULL);
    /* Pairs within 32 tiles of 128 tokens; all but one go into the state, and all but one read it.
     */
    const double flops = 4.0 * 32 * 128 * (32 * 8256) + 2.0 * 32 * 128 * 128 * (2 * 31 * 128 + 30);
    const double waves = 10 * 108 / 1024.0; /* 32 tiles of 128 rows of 32 heads */
    LhProvenance p;

    ck_assert_double_eq_tol(
        (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_linear_intra, &args, &p),
        flops / (0.3 * 312e12) * waves * 1e12, 2);
    ck_assert_int_eq(p, LH_PROVENANCE_ASSUMED);
    g_array_append_val(device->kernels, curve);
    ck_assert_double_eq_tol(
        (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_linear_intra, &args, &p),
        flops / 90e12 * (1 + 64.0 / (double)n) * waves * 1e12, 2);
    ck_assert_int_eq(p, LH_PROVENANCE_MEASURED);
    g_array_set_size(device->kernels, device->kernels->len - 1);
    /* Of scores written out 60 %, where their traffic does not take longer. */
    ck_assert_double_eq_tol(
        (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_scores_dv, &all, &p),
        2.0 * 32 * 128 * 4096 * 4096 / (0.6 * 312e12) * waves * 1e12, 2);
    ck_assert_int_eq(p, LH_PROVENANCE_ASSUMED);
}
END_TEST

/* What counts where only attention does: flops of every kernel of attention, softmax or linear, and
 * one second of every block that attends. */
START_TEST(sim_other_cost_modes_count_attention)
{
    const LhDevice device = { .sm_count = 1 };
    const LhKernelArgs args = block(1024, 1024, 1024 * 1024, LH_MASK_FULL);

    for (int k = 0; k < LH_KERNELS_COUNT; k++) {
        const LhEffect effect = lh_kernels[k]->effect;
        const bool attends = effect == LH_EFFECT_ATTEND || effect == LH_EFFECT_ATTEND_GRAD ||
                             effect == LH_EFFECT_SCORES;
        const bool linear = effect == LH_EFFECT_STATE_SUM || effect == LH_EFFECT_STATE_CARRY ||
                            effect == LH_EFFECT_STATE_APPLY;
        const uint64_t flops = lh_kernels[k]->flops(&args);
        LhProvenance p;

        ck_assert_int_eq(cost_by(LH_COST_UNIT, &device, (LhKernelId)k, &args, &p),
                         attends ? LH_PS_PER_S : 0);
        ck_assert_double_eq_tol(
            (double)cost_by(LH_COST_FLOPS, &device, (LhKernelId)k, &args, &p),
            attends || linear || effect == LH_EFFECT_SCORES_APPLY ? (double)flops / 1e3 : 0, 0.6);
    }
}
END_TEST

/* ---- messages ---- */

START_TEST(sim_two_ranks_take_latency_and_bytes_over_bandwidth)
{
    static const uint64_t sizes[] = { 1, 1000, 12345678, 67108864, 8589934592 };

    for (uint32_t i = 0; i < G_N_ELEMENTS(sizes); i++)
        for (int model = LH_NETWORK_FAIR; model <= LH_NETWORK_FIFO; model++) {
            Script script = SCRIPT(
                { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, sizes[i] } } },
                { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, sizes[i] } } });
            const Wide bandwidth = 300000000000;
            const LhTime exact =
                (LhTime)((2 * (Wide)sizes[i] * LH_PS_PER_S + bandwidth) / (2 * bandwidth));
            g_autoptr(LhSimResult) result = NULL;
            World w;

            script_init(&w, &script, 2);
            w.params.network_model = (LhNetworkModel)model;
            result = world_run(&w);
            ck_assert_int_eq(result->makespan_ps, 2 * US + exact);
            for (uint32_t r = 0; r < 2; r++) {
                ck_assert_int_eq(result->ranks[r].idle_ps[LH_IDLE_COMM + LH_TIER_NVLINK],
                                 2 * US + exact);
                ck_assert_int_eq(result->ranks[r].comm_ps, 2 * US + exact);
            }
            ck_assert_uint_eq(result->ranks[0].bytes_sent, sizes[i]);
            ck_assert_uint_eq(result->ranks[1].bytes_sent, 0);
            ck_assert_uint_eq(result->events, 1);
            world_clear(&w);
        }
}
END_TEST

/* 3 MB over NVLink: 10 us and 2 us latency. */
#define BYTES 3000000
#define MOVE (12 * US)

/* A message starts when both ends have posted it, whoever comes last. */
START_TEST(sim_messages_wait_for_both_ends)
{
    Script late_receiver = SCRIPT(
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 7 * US },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } }, .after = { 1 } });
    Script late_sender = SCRIPT(
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 9 * US },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } }, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    ck_assert_int_eq(script_makespan(&late_receiver, 2), 7 * US + MOVE);
    script_init(&w, &late_sender, 2);
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 9 * US + MOVE);
    /* Before the sender came, the receiver waited for it; then its data was on the way. */
    ck_assert_int_eq(result->ranks[1].idle_ps[LH_IDLE_IMBALANCE], 9 * US);
    ck_assert_int_eq(result->ranks[1].idle_ps[LH_IDLE_COMM], MOVE);
    ck_assert_int_eq(result->ranks[1].comm_ps, 9 * US + MOVE);
    world_clear(&w);
}
END_TEST

/* Same peers, same tag: in order of posting. */
START_TEST(sim_messages_match_by_peer_tag_and_order)
{
    Script script =
        SCRIPT({ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 5, BYTES } } },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 40 * US },
               { .rank = 0,
                 .kind = LH_OP_EXCHANGE,
                 .notes = { { true, 1, 5, 2 * BYTES } },
                 .after = { 2 } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 5, BYTES } } },
               { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 1 * US, .after = { 1 } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 5, 2 * BYTES } } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 2);
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 40 * US + 22 * US);
    ck_assert_uint_eq(result->ranks[0].bytes_sent, 3 * BYTES);
    world_clear(&w);
}
END_TEST

/* Tags tell messages apart that would match in the other order. */
START_TEST(sim_messages_of_other_tags_do_not_match)
{
    Script script =
        SCRIPT({ .rank = 0,
                 .kind = LH_OP_EXCHANGE,
                 .notes = { { true, 1, 1, BYTES }, { true, 1, 2, 2 * BYTES } } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 2, 1 } } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 1, 1 } } },
               { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 99 * US, .after = { 1 } });

    ck_assert_int_eq(script_makespan(&script, 2), 22 * US + 99 * US);
}
END_TEST

/* Links are full duplex; a group is done when all of its messages are; two messages share a link.
 */
START_TEST(sim_groups_end_with_their_last_message)
{
    Script both_ways = SCRIPT({ .rank = 0,
                                .kind = LH_OP_EXCHANGE,
                                .notes = { { true, 1, 0, BYTES }, { false, 1, 0, BYTES } } },
                              { .rank = 1,
                                .kind = LH_OP_EXCHANGE,
                                .notes = { { true, 0, 0, BYTES }, { false, 0, 0, BYTES } } });
    Script fan_out =
        SCRIPT({ .rank = 0,
                 .kind = LH_OP_EXCHANGE,
                 .notes = { { true, 1, 0, BYTES }, { true, 2, 0, BYTES } } },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 1 * US, .after = { 1 } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
               { .rank = 2, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });

    ck_assert_int_eq(script_makespan(&both_ways, 2), MOVE);
    ck_assert_int_eq(script_makespan(&fan_out, 3), 2 * 10 * US + 2 * US + 1 * US);
}
END_TEST

/* In-order streams; across streams only what `after` says. */
START_TEST(sim_streams_keep_order_and_overlap)
{
    Script script =
        SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US },
               { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 3 * US },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 4 * US, .after = { 2, 1 } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
               { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 100 * US });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 2);
    result = world_run(&w);
    ck_assert_int_eq(result->ranks[0].finish_ps, MOVE + 4 * US);
    ck_assert_int_eq(result->ranks[0].busy_ps, 12 * US);
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_COMM], 4 * US);
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_IMBALANCE], 100 * US - MOVE - 4 * US);
    ck_assert_int_eq(result->makespan_ps, 100 * US);
    world_clear(&w);
}
END_TEST

/* ---- several compute streams ---- */

/* Two kernels at once take as long as one after the other; the second's host gap is hidden, and
 * after `after` one is alone again. */
START_TEST(sim_compute_streams_share_the_device)
{
    Script equal =
        SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 6 * US },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 6 * US, .stream = COMPUTE2 });
    /* 4 + 4 by 8 us, then 6 alone; meanwhile nothing moves. */
    Script longer =
        SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 10 * US },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 4 * US, .stream = COMPUTE2 },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 1 * US });
    /* The message takes 12 us; beside it one stream computes 12 us, and then both share. */
    Script waits = SCRIPT(
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 14 * US },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 3 * US, .stream = COMPUTE2, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
    Script *const scripts[] = { &equal, &longer, &waits };
    const LhTime ends[] = { 12 * US, 15 * US, 17 * US };

    for (uint32_t i = 0; i < G_N_ELEMENTS(scripts); i++) {
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, scripts[i], 2);
        result = world_run(&w);
        ck_assert_int_eq(result->makespan_ps, ends[i]);
        ck_assert_int_eq(result->ranks[0].busy_ps, ends[i]);
        world_clear(&w);
    }
}
END_TEST

/* Attention blocks of 128 rows of one head on the 108 SMs of an A100. */
static LhTime
blocks_makespan(const LhKernelArgs *args, uint32_t streams, uint32_t count)
{
    Line lines[4];
    Script script = { .lines = lines, .count = count };
    g_autoptr(LhSimResult) result = NULL;
    World w;

    for (uint32_t i = 0; i < count; i++)
        lines[i] = (Line){ .rank = 0,
                           .kind = LH_OP_COMPUTE,
                           .kernel = LH_KERNEL_ID_attention_block,
                           .args = args,
                           .stream = i % streams == 0 ? COMPUTE : COMPUTE2 };
    script_init(&w, &script, 1);
    w.params.compute_time = NULL;
    w.program->params.attention.head_dim = 128;
    result = world_run(&w);
    ck_assert_int_eq(result->ranks[0].busy_ps, result->makespan_ps);
    world_clear(&w);
    return result->makespan_ps;
}

/*
 * Two kernels fill each other's last wave: together they take as long as on one stream, without the
 * rounding. But a kernel of few thread blocks has no use for the SMs of the other: 32 blocks on 108
 * SMs twice are 64, side by side and no faster.
 */
START_TEST(sim_compute_streams_fill_the_last_wave)
{
    const LhKernelArgs many = block(1024, 1024, 1024 * 1024, LH_MASK_FULL),
                       few = block(128, 4096, 128 * 4096, LH_MASK_FULL);
    const LhTime rounded = blocks_makespan(&many, 1, 2), shared = blocks_makespan(&many, 2, 2);
    const LhTime one = blocks_makespan(&few, 1, 1);

    /* 256 thread blocks are 2.37 waves of 108 and cost 3. */
    ck_assert_double_eq_tol((double)shared / (double)rounded, 256.0 / (3 * 108), 1e-7);
    ck_assert_int_eq(blocks_makespan(&few, 2, 2), one);
    ck_assert_int_eq(blocks_makespan(&few, 1, 2), 2 * one);
}
END_TEST

/* ---- the SMs that communication holds ---- */

/* 27 of 108 SMs: compute beside the message runs at 3/4 for as long as the message is there. */
START_TEST(sim_communication_slows_compute_beside_it)
{
    const struct {
        LhTime compute, end;
    } cases[] = {
        { 9 * US, 12 * US },  /* 9 / 0.75: ends with the message */
        { 6 * US, 8 * US },   /* within it */
        { 30 * US, 33 * US }, /* 12 us at 3/4 are 9, and 21 are left */
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Script script =
            SCRIPT({ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
                   { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = cases[i].compute },
                   { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, 2);
        w.topology.nvlink.ctas = 27;
        result = world_run(&w);
        ck_assert_int_eq(result->ranks[0].busy_ps, cases[i].end);
        ck_assert_int_eq(result->makespan_ps, MAX(cases[i].end, MOVE));
        world_clear(&w);
    }
}
END_TEST

/* A kernel that waits for its peer holds its SMs as well; two kernels hold the sum, at most 9 of 10
 * SMs. */
START_TEST(sim_waiting_communication_holds_its_sms)
{
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, BYTES } } },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 1, BYTES } }, .stream = COMM2 },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 20 * US },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 8 * US },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } }, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 1, BYTES } }, .after = { 2 } });
    const struct {
        uint64_t ctas;
        LhTime end;
    } cases[] = {
        /* 1/2 until the first message is in at 20 us, 3/4 until 32 us: 10 + 9 done, 1 left. */
        { 27, 33 * US },
        /* 1/10 and 1/10: 3.2 done, 16.8 left. */
        { 1000, 32 * US + 168 * US / 10 },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, 2);
        w.topology.nvlink.ctas = cases[i].ctas;
        result = world_run(&w);
        ck_assert_int_eq(result->ranks[0].busy_ps, cases[i].end);
        world_clear(&w);
    }
}
END_TEST

/* ---- the host ---- */

static void
count_record(void *data, const LhTimelineRecord *record)
{
    LhTime *latest = data;

    latest[0] = MAX(latest[0], record->end_ps - record->start_ps);
    ck_assert_int_ge(record->start_ps, record->issued_ps);
    ck_assert_int_ge(record->end_ps, record->start_ps);
}

/* Op k of a rank is issued k launches after the start: with slow launches nothing else counts. */
START_TEST(sim_slow_hosts_bound_the_run)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++) {
        const LhProgramParams params = attention(4, 4 * 256, 8, 8, 64);
        g_autoptr(LhSimResult) result = NULL;
        LhTime longest = 0;
        uint32_t most = 0;
        World w;

        world_init(&w, "dgx-a100-80g", schedule(schedule_names[i], &params));
        w.device.kernel_launch_ps = 10 * MS;
        w.params.timeline = count_record;
        w.params.timeline_data = &longest;
        result = world_run(&w);
        for (uint32_t r = 0; r < 4; r++) {
            uint32_t launches;

            kernel_time(&w, r, &launches);
            most = MAX(most, launches);
        }
        ck_assert_int_ge(result->makespan_ps, (most - 1) * w.device.kernel_launch_ps);
        ck_assert_int_le(result->makespan_ps,
                         (most - 1) * w.device.kernel_launch_ps + w.device.kernel_launch_ps / 10);
        for (uint32_t r = 0; r < 4; r++)
            ck_assert_int_gt(10 * result->ranks[r].idle_ps[LH_IDLE_HOST], result->makespan_ps);
        world_clear(&w);
    }
}
END_TEST

/* The public code's host waits for its device in each of P/2 + 1 steps. */
START_TEST(sim_syncs_cost_host_time_each)
{
    for (uint32_t ranks = 2; ranks <= 16; ranks += 2) {
        LhProgramParams params = attention(ranks, ranks * 512, 8, 8, 64);
        LhTime makespans[2];

        params.published_code = true;
        for (uint32_t i = 0; i < 2; i++) {
            g_autoptr(LhSimResult) result = NULL;
            World w;

            world_init(&w, "bench-platform", schedule("dfa-balanced", &params));
            w.device.stream_sync_ps = i * 10 * MS;
            /* Without sharing, which syncs ease: they pull the steps of ranks apart. */
            w.params.network_model = LH_NETWORK_ALPHA_BETA;
            result = world_run(&w);
            makespans[i] = result->makespan_ps;
            world_clear(&w);
        }
        ck_assert_int_eq(makespans[1] - makespans[0], 2 * (ranks / 2 + 1) * 10 * MS);
    }
}
END_TEST

START_TEST(sim_syncs_wait_for_earlier_ops)
{
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 50 * US },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
        { .rank = 0, .kind = LH_OP_SYNC }, { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 10 * US },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 1 * US },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 2);
    w.device.kernel_launch_ps = 3 * US;
    w.device.stream_sync_ps = 8 * US;
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 50 * US + 8 * US + 10 * US + 1 * US);
    ck_assert_int_eq(result->ranks[0].busy_ps, 61 * US);
    world_clear(&w);
}
END_TEST

/* How a program is cut into steps is for labels: it decides nothing. */
START_TEST(sim_steps_decide_nothing)
{
    static const LhTime launches[] = { 0, 3 * US, 40 * US };

    for (uint32_t i = 0; i < G_N_ELEMENTS(launches); i++) {
        LhTime makespans[2], busy[2];

        for (uint32_t apart = 0; apart < 2; apart++) {
            Script script =
                SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 50 * US },
                       { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
                       { .rank = 0, .kind = LH_OP_SYNC },
                       { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 10 * US },
                       { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, BYTES } } },
                       { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 1 * US },
                       { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
                       { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 9 * US, .after = { 1 } },
                       { .rank = 1, .kind = LH_OP_SYNC }, { .rank = 1, .kind = LH_OP_SYNC },
                       { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } } });
            g_autoptr(LhSimResult) result = NULL;
            World w;

            script.apart = apart != 0;
            script_init(&w, &script, 2);
            w.device.kernel_launch_ps = launches[i];
            w.device.stream_sync_ps = 8 * US;
            result = world_run(&w);
            makespans[apart] = result->makespan_ps;
            busy[apart] = result->ranks[0].busy_ps;
            world_clear(&w);
        }
        ck_assert_int_eq(makespans[0], makespans[1]);
        ck_assert_int_eq(busy[0], busy[1]);
    }
}
END_TEST

/* ---- memory of the program ---- */

START_TEST(sim_memory_peaks_once)
{
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_ALLOC, .slot = SLOT_LARGE },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US },
        { .rank = 0, .kind = LH_OP_FREE, .slot = SLOT_LARGE }, { .rank = 0, .kind = LH_OP_SYNC },
        { .rank = 0, .kind = LH_OP_ALLOC, .slot = SLOT_SMALL },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US },
        { .rank = 1, .kind = LH_OP_ALLOC, .slot = SLOT_SMALL },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 5 * US }, { .rank = 1, .kind = LH_OP_SYNC },
        { .rank = 1, .kind = LH_OP_ALLOC, .slot = SLOT_LARGE },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 5 * US });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script.apart = true;
    script_init(&w, &script, 2);
    result = world_run(&w);
    ck_assert_uint_eq(result->ranks[0].peak_bytes, 70 + 1000);
    ck_assert_uint_eq(result->ranks[0].peak_by_tensor[LH_TENSOR_Q], 70);
    ck_assert_uint_eq(result->ranks[0].peak_by_tensor[LH_TENSOR_KV], 1000);
    ck_assert_int_eq(result->ranks[0].peak_at_ps, 0);
    ck_assert_uint_eq(result->ranks[1].peak_bytes, 70 + 300 + 1000);
    ck_assert_uint_eq(result->ranks[1].peak_by_tensor[LH_TENSOR_Q], 70 + 300);
    ck_assert_int_eq(result->ranks[1].peak_at_ps, 5 * US);
    world_clear(&w);
}
END_TEST

/* ---- what cannot end ---- */

START_TEST(sim_deadlock_names_who_waits)
{
    Script missing = SCRIPT(
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 3, BYTES } }, .after = { 1 } },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US, .after = { 2 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 4, BYTES } } });
    /* Each waits for what the other does next. */
    Script circle =
        SCRIPT({ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, BYTES } } },
               { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } } });
    Script absent = SCRIPT({ .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = BYTES },
                           { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 5 * US });
    World w;

    script_init(&w, &missing, 2);
    check_failure(&w, LH_ERROR_RUNTIME,
                  (const char *[]){ "2 of 2 ranks", "rank 0, op 1 (exchange",
                                    "rank 1, op 0 (exchange", "1 message", NULL });
    script_init(&w, &circle, 2);
    check_failure(&w, LH_ERROR_RUNTIME,
                  (const char *[]){ "2 of 2 ranks", "rank 0, op 0", "rank 1, op 0", NULL });
    script_init(&w, &absent, 2);
    check_failure(
        &w, LH_ERROR_RUNTIME,
        (const char *[]){ "1 of 2 ranks", "rank 0, op 0 (collective", "rest of its group", NULL });
}
END_TEST

START_TEST(sim_impossible_ops_are_input_errors)
{
    Script self = SCRIPT({ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } } },
                         { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = US });
    Script nobody =
        SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 7, 0, BYTES } } });
    Script future = SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US, .after = { 2 } },
                           { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US });
    World w;

    script_init(&w, &self, 2);
    check_failure(&w, LH_ERROR_INPUT, (const char *[]){ "rank 0, op 0", "another rank", NULL });
    script_init(&w, &nobody, 2);
    check_failure(&w, LH_ERROR_INPUT, (const char *[]){ "rank 1, op 0", "another rank", NULL });
    script_init(&w, &future, 1);
    check_failure(&w, LH_ERROR_INPUT, (const char *[]){ "rank 0, op 0", "not earlier", NULL });
}
END_TEST

static bool
stop(void *data, uint64_t events, LhTime now_ps)
{
    uint32_t *calls = data;

    ck_assert_uint_gt(events, 0);
    ck_assert_int_gt(now_ps, 0);
    return ++*calls < 1;
}

START_TEST(sim_can_be_interrupted)
{
    const LhProgramParams params = attention(128, 128 * 16, 1, 1, 8);
    uint32_t calls = 0;
    World w;

    world_init(&w, "bench-platform", schedule("ring", &params));
    w.params.progress = stop;
    w.params.progress_data = &calls;
    check_failure(&w, LH_ERROR_RUNTIME, (const char *[]){ "interrupted", NULL });
    ck_assert_uint_eq(calls, 1);
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
            g_autofree char *again = timeline(name, m, 0, 2); /* without jitter seeds do nothing */
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

/* ---- rules for every schedule on every cluster ---- */

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

/* @change: 0 nothing; 1, 2, 3 double a bandwidth; 4, 5, 6 halve a latency; 7 doubles the limit of a
 * pair of GPUs; 8 all of it, everywhere. */
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
    if (change >= 7)
        w.topology.nic.flow_bandwidth *= 2;
    w.params.network_model = model;
    result = world_run(&w);
    world_clear(&w);
    return result->makespan_ps;
}

/*
 * Messages that do not meet only gain by a better link. Where they share links there are exceptions
 * of the kind that Graham found for scheduling (1969): a message that comes through sooner lets the
 * next one start sooner, which then takes bandwidth from one that matters more. They stay small.
 */
#define ANOMALY_MAX 0.005

START_TEST(sim_better_links_are_never_slower)
{
    for (uint32_t c = 0; c < G_N_ELEMENTS(some_clusters); c++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++)
            for (int model = LH_NETWORK_FAIR; model <= LH_NETWORK_ALPHA_BETA; model++) {
                const Cluster *cluster = &some_clusters[c];
                const char *name = schedule_names[i];
                const LhTime base = makespan_with(cluster, name, (LhNetworkModel)model, 0);
                const double allowed = model == LH_NETWORK_FAIR ? ANOMALY_MAX : 0;

                for (uint32_t change = 1; change <= CHANGES; change++) {
                    const LhTime changed =
                        makespan_with(cluster, name, (LhNetworkModel)model, change);

                    ck_assert_msg((double)changed <= (double)base * (1 + allowed),
                                  "%s, %u x %s, %s: better links (%u) take %" G_GINT64_FORMAT
                                  " ps more of %" G_GINT64_FORMAT,
                                  name, cluster->ranks, cluster->topology,
                                  lh_network_model_names[model], change, changed - base, base);
                }
            }
}
END_TEST

/* Bytes that cross the links of a tier upwards from one place, at the least. */
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

#define MANY_RANKS 65536

/* The memory of the sanitizer itself is no part of the claim. */
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

/* The first steps of a ring over 65,536 ranks; the whole program would be 4 billion ops. */
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

/* 4 KiB per rank and 20 MB, the process and its libraries included. */
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
             sim_links_carry_what_ranks_send, sim_one_rank_costs_one_device,
             sim_kernel_times_are_the_formulas, sim_two_ranks_take_latency_and_bytes_over_bandwidth,
             sim_messages_wait_for_both_ends, sim_messages_match_by_peer_tag_and_order,
             sim_messages_of_other_tags_do_not_match, sim_groups_end_with_their_last_message,
             sim_streams_keep_order_and_overlap, sim_compute_streams_share_the_device,
             sim_compute_streams_fill_the_last_wave, sim_kernels_by_position_take_their_curve,
             sim_matrix_products_run_at_a_share_of_the_peak, sim_other_cost_modes_count_attention,
             sim_communication_slows_compute_beside_it, sim_waiting_communication_holds_its_sms,
             sim_slow_hosts_bound_the_run, sim_syncs_cost_host_time_each,
             sim_syncs_wait_for_earlier_ops, sim_steps_decide_nothing, sim_memory_peaks_once,

             sim_deadlock_names_who_waits, sim_impossible_ops_are_input_errors,
             sim_can_be_interrupted, sim_slow_links_slow_and_failed_links_fail,
             sim_stragglers_slow_their_rank_alone, sim_is_deterministic_in_its_seed,
             sim_jitter_stays_in_its_bounds, sim_better_links_are_never_slower,
             sim_nothing_beats_the_roofline, sim_memory_grows_with_ranks_not_ops)
