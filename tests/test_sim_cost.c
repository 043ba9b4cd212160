/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of kernels on a device against the formulas: curves and whole waves, rooflines, memory
 * traffic, and concurrent kernels that share the SMs.
 */
#include "base/rng.h"
#include "program/work.h"
#include "run_tests.h"
#include "sim/cost/product_cost.h"
#include "sim_schedules.h"

#include <math.h>

/* ---- one device ---- */

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

/* 32 heads of size 128. */
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

    lh_cost_init(&cost, mode, device);
    time = lh_cost_compute(&cost, &program, &op, NULL);
    *provenance = cost.provenance;
    lh_cost_clear(&cost);
    return time;
}

static LhTime
cost_of(const LhDevice *device, LhKernelId kernel, uint64_t nk, LhProvenance *provenance)
{
    const LhKernelArgs args = block(16384, nk, lh_causal_pairs(16384, nk, 0), LH_MASK_CAUSAL);

    return cost_by(LH_COST_DEVICE, device, kernel, &args, provenance);
}

/* A curve of lengths 1K to 4K with an error of 2 %: no note within that range; beyond it, the
 * shortest and longest length. The error of all kernels is the time-weighted mean of theirs; 25
 * % for memory bandwidth of a datasheet. */
START_TEST(sim_costs_say_how_far_to_trust_them)
{
    const LhKernelRate curve = { .kernel = (char *)"attention_fwd",
                                 .mask = 0,
                                 .head_dim = 128,
                                 .rate = 200e12,
                                 .half_length = 500,
                                 .length_min = 1024,
                                 .length_max = 4096,
                                 .from.provenance = LH_PROVENANCE_FITTED,
                                 .residuals.worst = 0.02 };
    g_autoptr(GArray) curves = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    const LhDevice device = { .matrix_rate = 300e12,
                              .memory_bandwidth = 2e12,
                              .memory_efficiency = 0.5,
                              .memory_provenance = LH_PROVENANCE_DATASHEET,
                              .sm_count = 108,
                              .tile_rows = 128,
                              .kernels = curves };
    const LhProgram program = { .params = attention(1, 16384, 32, 32, 128) };
    const uint64_t lengths[] = { 1024, 4096, 512, 256, 8192 };
    LhOp op = { .kind = LH_OP_COMPUTE };
    double attention_s = 0, merge_s;
    LhCost cost;

    g_array_append_val(curves, curve);
    lh_cost_init(&cost, LH_COST_DEVICE, &device);
    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        op.compute.kernel = LH_KERNEL_ID_attention_fwd;
        op.compute.args = block(2048, lengths[i], 2048 * lengths[i], LH_MASK_FULL);
        attention_s += (double)lh_cost_compute(&cost, &program, &op, NULL) * 1e-12;
        ck_assert_double_eq(cost.beyond.shortest, i < 2 ? 0 : i == 2 ? 512 : 256);
        ck_assert_double_eq(cost.beyond.longest, i < 4 ? 0 : 8192);
    }
    ck_assert_double_eq(cost.beyond.fitted_from, 1024);
    ck_assert_double_eq(cost.beyond.fitted_to, 4096);
    ck_assert_double_eq_tol(cost.uncertain_s, 0.02 * attention_s, 1e-6 * attention_s);
    op.compute.kernel = LH_KERNEL_ID_merge;
    merge_s = (double)lh_cost_compute(&cost, &program, &op, NULL) * 1e-12;
    ck_assert_double_gt(merge_s, 0);
    ck_assert_double_eq_tol(cost.uncertain_s, 0.02 * attention_s + 0.25 * merge_s,
                            1e-6 * attention_s);
    lh_cost_clear(&cost);
}
END_TEST

/* 16384 causal tokens, 32 heads of size 128: a curve in tiles on 108 SMs, or the roofline;
 * memory traffic. */
START_TEST(sim_kernel_times_are_the_formulas)
{
    const LhKernelRate curve = { .kernel = (char *)"attention_fwd",
                                 .mask = 1,
                                 .head_dim = 128,
                                 .rate = 200e12,
                                 .half_length = 500,
                                 .from.provenance = LH_PROVENANCE_MEASURED };
    g_autoptr(GArray) curves = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    const LhDevice device = { .matrix_rate = 300e12,
                              .memory_bandwidth = 2e12,
                              .memory_efficiency = 0.75,
                              .memory_provenance = LH_PROVENANCE_FITTED,
                              .sm_count = 108,
                              .tile_rows = 128,
                              .tile_order = LH_TILES_LONGEST_FIRST,
                              .kernels = curves };
    const double n = 16384, rows = n * 32, q = rows * 128 * 2;
    const double flops = 4 * 32 * 128 * (n * (n + 1) / 2);
    /* 128 tiles per head of 2, 4, ... 256 blocks of 64 keys, each with a prologue of half of 500
     * - 128 tokens. There are so many tiles that the last ones end half a shortest tile after
     * the mean. */
    const double prologue = (500.0 - 128) / 2 / 64;
    const double blocks = 128.0 * 129 + 128 * prologue;
    const double makespan = blocks * 32 / 108 + (2 + prologue) / 2;
    LhProvenance provenance;

    /* normalise reads o (fp32), m, l; writes o, lse */
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
        makespan * 108 * 4 * 128 * 64 * 128 / 200e12 * 1e12, 1);
    /* which is close to the curve itself */
    ck_assert_double_eq_tol(makespan * 108 * 4 * 128 * 64 * 128, flops * (1 + 500 / n),
                            0.001 * flops);
    ck_assert_int_eq(provenance, LH_PROVENANCE_MEASURED);
}
END_TEST

/* Memory traffic depends on the types of the op's tensors, not on the attention's type. */
START_TEST(sim_traffic_is_of_the_operands_type)
{
    const LhDevice device = { .memory_bandwidth = 1e12, .memory_efficiency = 1 };
    const LhKernelArgs args = block(1024, 0, 0, LH_MASK_EMPTY);
    LhSlot slots[] = { { .dtype = LH_DTYPE_FP32 }, { .dtype = LH_DTYPE_BF16 } };
    const LhProgram program = { .params = attention(1, 1024, 32, 32, 128),
                                .slots = slots,
                                .slots_count = 2 };
    LhOp op = { .kind = LH_OP_COMPUTE,
                .compute = { .kernel = LH_KERNEL_ID_normalise,
                             .args = args,
                             .regions_count = 3,
                             .regions = { { .slot = 0 }, { .slot = 1 }, { .slot = 0 } } } };
    const LhTime q = 1024 * 32 * 128, rows = 1024 * 32;
    LhCost cost;

    lh_cost_init(&cost, LH_COST_DEVICE, &device);
    ck_assert_int_eq(lh_cost_compute(&cost, &program, &op, NULL), (4 + 2) * q + 3 * 4 * rows);
    slots[1].dtype = LH_DTYPE_FP32;
    ck_assert_int_eq(lh_cost_compute(&cost, &program, &op, NULL), (4 + 4) * q + 3 * 4 * rows);
    lh_cost_clear(&cost);
}
END_TEST

/*
 * Kernels with positions: a full rectangle takes the time of a full block, and a triangle that of a
 * causal one. Strips of Attention2D, half full, are triangles; a window of 512 in 64K keys takes
 * the time of 512 keys.
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

static double
product_rate(const LhDevice *device, uint64_t m, uint64_t n, uint64_t k)
{
    const LhKernelArgs args = { .product = { m, n, k } };
    LhProvenance p;

    return 2.0 * (double)m * (double)n * (double)k * 1e12 /
           (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_product, &args, &p);
}

/* cuBLAS on an A100, read off a plot (stas00/ml-engineering, maximum achievable matmul): m = n =
 * k from 2K within 10 %; and the tiles by hand. */
START_TEST(sim_products_go_by_tiles)
{
    g_autoptr(LhDevice) device = lh_device_load("a100-sxm-80g", NULL);
    const double peak = 312e12 * 0.87;
    static const double published[] = { 195e12, 260e12, 290e12 };
    const LhProductShape wave = { .matrices = 1, .rows = 384, .columns = 1152, .depth = 8192 };
    double rounding;

    for (unsigned i = 0; i < 3; i++) {
        const uint64_t m = UINT64_C(2048) << i;

        ck_assert_double_eq_tol(product_rate(device, m, m, m) / published[i], 1, 0.1);
    }
    /* 32 x 16 tiles of 64 x 128 are five waves of 108, the last three quarters full. */
    ck_assert_double_eq_tol(product_rate(device, 2048, 2048, 2048) /
                                (512.0 / (5 * 108) * 2048 / (2048 + 256) * 0.85 * peak),
                            1, 1e-6);
    /* 384 rows by 1,152 columns: 54 tiles of 64 x 128 are one wave, half full. */
    ck_assert_double_eq_tol(product_rate(device, 384, 1152, 8192) /
                                (54.0 / 108 * 8192 / (8192 + 256) * 0.85 * peak),
                            1, 1e-6);
    lh_product_seconds(device, &wave, peak, &rounding);
    ck_assert_double_eq_tol(rounding, 108.0 / 54, 1e-12);
    /* 64 rows read all weights, 4,096 x 16,384 elements of 2 bytes. */
    ck_assert_double_eq_tol(2.0 * 64 * 16384 * 4096 / product_rate(device, 64, 16384, 4096) *
                                2039e9 * 0.78 /
                                (2.0 * (64.0 * 4096 + 4096.0 * 16384 + 64.0 * 16384)),
                            1, 1e-6);
}
END_TEST

/* Stated, and assumed to be 1/32 of the 16-bit peak. 1,188 tiles are whole waves. */
START_TEST(sim_products_in_fp32_take_their_rate)
{
    const LhKernelArgs args = { .product = { .m = 4224, .n = 9216, .k = 1 << 20, .fp32 = true } };
    static const struct {
        const char *device;
        double rate;
    } rows[] = { { "a100-sxm-80g", 312e12 / 32 }, { "h100-sxm", 33.4e12 } };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(LhDevice) device = lh_device_load(rows[i].device, NULL);
        const double flops = 2.0 * 4224 * 9216 * (1 << 20);
        LhProvenance p;
        const double seconds =
            (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_product, &args, &p) / 1e12;

        ck_assert_double_eq_tol(flops / seconds / rows[i].rate, 1, 0.02);
    }
}
END_TEST

/* Gradients are products of other shapes with as many flops; experts fill waves jointly; all
 * other kernels are limited by memory traffic. */
START_TEST(sim_layers_go_by_shape_and_traffic)
{
    g_autoptr(LhDevice) device = lh_device_load("a100-sxm-80g", NULL);
    const LhKernelArgs args = { .product = { 4096, 1024, 8192 } };
    const LhKernelArgs turned[] = { { .product = { 4096, 8192, 1024 } },
                                    { .product = { 8192, 1024, 4096 } } };
    const LhKernelArgs experts = { .product = { 8 * 512, 2048, 4096, .experts = 8 } };
    const LhKernelArgs alone = { .product = { 512, 2048, 4096 } };
    const LhKernelArgs norm = { .rows = { 4096, 8192, .traffic = 32 } };
    LhProvenance p;

    ck_assert_int_eq(cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_product_dgrad, &args, &p),
                     cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_product, &turned[0], &p));
    ck_assert_int_eq(cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_product_wgrad, &args, &p),
                     cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_product, &turned[1], &p));
    /* Eight experts of 4 x 16 tiles of 128 x 128 are 512, or five waves of 108. */
    ck_assert_double_eq_tol(
        (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_expert_product, &experts, &p),
        5 * 2.0 * 128 * 128 * (4096 + 256) * 108 / (312e12 * 0.87 * 0.93) * 1e12, 2);
    ck_assert_int_lt(cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_expert_product, &experts, &p),
                     8 * cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_product, &alone, &p));
    ck_assert_double_eq_tol(
        (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_rms_norm, &norm, &p),
        32.0 * 4096 * 8192 / (2039e9 * 0.78) * 1e12, 2);
}
END_TEST

/* Which flops count as dense and which as attention. */
START_TEST(sim_dense_flops_are_products)
{
    const LhKernelArgs args = { .product = { 6, 5, 4, .experts = 2 } };

    for (int k = 0; k < LH_KERNELS_COUNT; k++) {
        const LhOp op = { .kind = LH_OP_COMPUTE,
                          .compute = { .kernel = (LhKernelId)k, .args = args } };
        const bool is_product = lh_kernels[k]->args == LH_ARGS_PRODUCT;

        if (lh_kernels[k]->args == LH_ARGS_MUON) /* three products are; test_kernels_muon.c */
            continue;
        ck_assert_uint_eq(lh_op_dense_flops(&op), is_product ? 2 * 6 * 5 * 4 : 0);
        if (is_product)
            ck_assert_uint_eq(lh_op_flops(&op), 0);
    }
    ck_assert_uint_eq(lh_op_dense_flops(&(const LhOp){ .kind = LH_OP_SYNC }), 0);
}
END_TEST

/* Matrix products of linear attention run at 30 % of the peak in whole waves (assumed),
 * regardless of attention's curves; a curve of their own takes precedence. */
START_TEST(sim_matrix_products_run_at_a_share_of_the_peak)
{
    const LhKernelRate curve = { .kernel = (char *)"linear_intra",
                                 .mask = 1,
                                 .head_dim = 128,
                                 .rate = 90e12,
                                 .half_length = 64,
                                 .from.provenance = LH_PROVENANCE_MEASURED };
    g_autoptr(LhDevice) device = lh_device_load("a100-sxm-80g", NULL);
    const uint64_t n = 4096;
    const LhKernelArgs args = block(n, n, n * (n + 1) / 2, LH_MASK_CAUSAL);
    const LhKernelArgs all = block(n, n, n * n, LH_MASK_FULL);
    /* Pairs within 32 tiles of 128 tokens; all tiles but one update the state, and all but one
     * read it. */
    const double flops = 4.0 * 32 * 128 * (32 * 8256) + 2.0 * 32 * 128 * 128 * (2 * 31 * 128 + 30);
    const double waves = 10 * 108 / 1024.0; /* 32 tiles of 128 rows of 32 heads */
    LhProvenance p;

    ck_assert_double_eq_tol(
        (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_linear_intra, &args, &p),
        flops / (0.2 * 312e12) * waves * 1e12, 2);
    ck_assert_int_eq(p, LH_PROVENANCE_DATASHEET); /* provenance of the peak rate */
    device->linear_efficiency = 0;                /* unknown */
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
    /* 60 % for scores written to memory, unless their traffic takes longer. */
    ck_assert_double_eq_tol(
        (double)cost_by(LH_COST_DEVICE, device, LH_KERNEL_ID_scores_dv, &all, &p),
        2.0 * 32 * 128 * 4096 * 4096 / (0.6 * 312e12) * waves * 1e12, 2);
    ck_assert_int_eq(p, LH_PROVENANCE_ASSUMED);
}
END_TEST

/* Cost modes other than device: flops of every attention kernel, softmax or linear; or one
 * second per block of attention. */
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

/* ---- concurrent kernels ---- */

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
 * Two concurrent kernels fill each other's last wave: together they take the time of one stream
 * without the rounding. But a kernel with few thread blocks cannot use the other's SMs: 32 blocks
 * twice on 108 SMs are 64, concurrent and no faster.
 */
START_TEST(sim_compute_streams_fill_the_last_wave)
{
    const LhKernelArgs many = block(1024, 1024, 1024 * 1024, LH_MASK_FULL),
                       few = block(128, 4096, 128 * 4096, LH_MASK_FULL);
    const LhTime rounded = blocks_makespan(&many, 1, 2), shared = blocks_makespan(&many, 2, 2);
    const LhTime one = blocks_makespan(&few, 1, 1);

    /* 256 thread blocks are 2.37 waves of 108 and cost 3 */
    ck_assert_double_eq_tol((double)shared / (double)rounded, 256.0 / (3 * 108), 1e-7);
    ck_assert_int_eq(blocks_makespan(&few, 2, 2), one);
    ck_assert_int_eq(blocks_makespan(&few, 1, 2), 2 * one);
}
END_TEST

/* ---- framework overheads of attention calls ---- */

static LhFramework *
framework(const char *groups)
{
    g_autofree char *text = g_strdup_printf("{\"schema\": \"longhaul.framework/1\", \"name\": "
                                            "\"f\", \"source\": \"s\", %s}",
                                            groups);
    g_autoptr(GError) error = NULL;
    LhFramework *f = lh_framework_parse("f.json", text, strlen(text), &error);

    ck_assert_msg(f != NULL, "%s", error != NULL ? error->message : "no message");
    return f;
}

#define FACT(name, value)                                                                          \
    "\"" name "\": {\"value\": " value ", \"provenance\": \"assumed\", \"source\": \"t\"}"

/* The framework's overhead of an op in bytes, on a device that moves one byte per picosecond. */
static LhTime
added(const LhFramework *f, const LhProgram *program, LhCost *cost, const LhOp *op)
{
    LhTime with, without;

    cost->framework = NULL;
    without = lh_cost_compute(cost, program, op, NULL);
    cost->framework = f;
    with = lh_cost_compute(cost, program, op, NULL);
    return with - without;
}

/* 2048 queries of 32 heads, 4096 keys of 32: q, k, v and o of a forward call; q, o, do, k, v and
 * dq, dk, dv of a backward one. */
START_TEST(sim_calls_are_surrounded_by_copies)
{
    g_autoptr(GArray) no_curves = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    const LhDevice device = { .kernels = no_curves,
                              .matrix_rate = 1e12,
                              .memory_bandwidth = 1e12,
                              .memory_efficiency = 1,
                              .sm_count = 1,
                              .tile_rows = 128 };
    const LhProgram program = { .params = attention(1, 16384, 32, 32, 128) };
    const LhTime q = 2048 * 32 * 128 * 2, kv = 2 * (LhTime)4096 * 32 * 128 * 2;
    g_autoptr(LhFramework) gather = framework(
        "\"attention_call\": {" FACT("gather", "true") ", " FACT("index_slowdown", "3") "}");
    g_autoptr(LhFramework) pad =
        framework("\"attention_call\": {" FACT("pad", "true") ", " FACT("index_slowdown", "3") "}");
    g_autoptr(LhFramework) host = framework("\"attention_call\": {" FACT("host_s", "0.001") "}");
    LhOp op = { .kind = LH_OP_COMPUTE,
                .compute = { .kernel = LH_KERNEL_ID_attention_fwd,
                             .args = block(2048, 4096, 2048 * 4096, LH_MASK_FULL) } };
    LhCost cost;

    lh_cost_init(&cost, LH_COST_DEVICE, &device);
    ck_assert_int_eq(added(gather, &program, &cost, &op), 3 * 2 * (q + kv));
    ck_assert_int_eq(added(pad, &program, &cost, &op), q + 3 * 2 * q);
    ck_assert_int_eq(added(host, &program, &cost, &op), 0);
    ck_assert_int_eq(lh_call_host_ps(host, &op), LH_PS_PER_S / 1000);
    ck_assert_int_eq(lh_call_host_ps(gather, &op), 0);
    ck_assert_int_eq(lh_call_host_ps(NULL, &op), 0);
    op.compute.kernel = LH_KERNEL_ID_attention_bwd_o;
    ck_assert_int_eq(added(gather, &program, &cost, &op), 3 * 2 * (3 * q + kv));
    ck_assert_int_eq(added(pad, &program, &cost, &op), (q + kv) + 3 * 2 * (q + kv));
    op.compute.kernel = LH_KERNEL_ID_add_to_fp32;
    ck_assert_int_eq(added(gather, &program, &cost, &op), 0);
    ck_assert_int_eq(lh_call_host_ps(host, &op), 0);
    op.compute.kernel = LH_KERNEL_ID_attention_fwd;
    lh_cost_clear(&cost);
    lh_cost_init(&cost, LH_COST_FLOPS, &device);
    ck_assert_int_eq(added(gather, &program, &cost, &op), 0);
    lh_cost_clear(&cost);
}
END_TEST

#define SAYS(name, value, provenance)                                                              \
    "\"" name "\": {\"value\": " value ", \"provenance\": \"" provenance "\", \"source\": \"t\"}"

/* Provenance of a framework's overheads: values from its code are exact; otherwise the weakest
 * value in use counts. */
START_TEST(sim_calls_are_trusted_as_their_file)
{
    static const struct {
        const char *text;
        LhCallTrust trust;
    } cases[] = {
        { "\"attention_call\": {" SAYS("gather", "true", "code") ", " SAYS(
              "index_slowdown", "3", "fitted") ", " SAYS("host_s", "1", "measured") "}",
          { LH_PROVENANCE_FITTED, LH_PROVENANCE_ASSUMED, LH_PROVENANCE_MEASURED } },
        { "\"attention_call\": {" SAYS("gather", "true", "code") ", " SAYS(
              "pad", "true", "datasheet") ", " SAYS("index_slowdown", "3", "fitted") "}",
          { LH_PROVENANCE_DATASHEET, LH_PROVENANCE_ASSUMED, LH_PROVENANCE_ASSUMED } },
        { "\"attention_call\": {" SAYS("gather", "false", "assumed") ", " SAYS(
              "host_s", "1", "fitted") "}, \"kernels\": {" SAYS("merge_slice", "8", "code") "}",
          { LH_PROVENANCE_MEASURED, LH_PROVENANCE_MEASURED, LH_PROVENANCE_FITTED } },
        { "\"attention_call\": {" SAYS("pad", "true", "code") "}",
          { LH_PROVENANCE_ASSUMED, LH_PROVENANCE_ASSUMED, LH_PROVENANCE_ASSUMED } },
    };
    const LhCallTrust nothing = lh_call_trust(NULL);

    ck_assert_int_eq(nothing.copies | nothing.slices | nothing.host, LH_PROVENANCE_MEASURED);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhFramework) f = framework(cases[i].text);
        const LhCallTrust trust = lh_call_trust(f);

        ck_assert_msg(trust.copies == cases[i].trust.copies, "copies of case %zu", i);
        ck_assert_msg(trust.slices == cases[i].trust.slices, "slices of case %zu", i);
        ck_assert_msg(trust.host == cases[i].trust.host, "host of case %zu", i);
    }
}
END_TEST

/* The provenance of a run is the weakest of its kernels, framework overheads, links and hosts. */
START_TEST(sim_runs_are_trusted_as_the_weakest_part)
{
    g_autoptr(LhFramework) host =
        framework("\"attention_call\": {" SAYS("host_s", "0.001", "assumed") "}");
    g_autoptr(LhFramework) copies = framework("\"attention_call\": {" SAYS(
        "gather", "true", "code") ", " SAYS("index_slowdown", "3", "datasheet") "}");
    static const struct {
        int link, latency, ctas, host, framework; /* 1: that of host, 2: that of copies */
        LhTime launch_ps;
        LhProvenance weakest;
    } cases[] = {
        { .weakest = LH_PROVENANCE_FITTED }, /* that of the curves */
        { .latency = LH_PROVENANCE_ASSUMED, .weakest = LH_PROVENANCE_ASSUMED },
        { .ctas = LH_PROVENANCE_DATASHEET, .weakest = LH_PROVENANCE_DATASHEET },
        { .link = LH_PROVENANCE_DATASHEET, .weakest = LH_PROVENANCE_DATASHEET },
        { .host = LH_PROVENANCE_ASSUMED, .weakest = LH_PROVENANCE_FITTED },
        { .host = LH_PROVENANCE_DATASHEET, .launch_ps = 1, .weakest = LH_PROVENANCE_DATASHEET },
        { .framework = 1, .weakest = LH_PROVENANCE_ASSUMED },
        { .framework = 2, .weakest = LH_PROVENANCE_DATASHEET },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const LhProgramParams params = attention(4, 4096, 4, 4, 128);
        g_autoptr(LhSimResult) result = NULL;
        World w;

        world_init(&w, "dgx-a100-80g", schedule("ring", &params));
        w.device.memory_provenance = LH_PROVENANCE_MEASURED;
        w.device.kernel_launch_ps = cases[i].launch_ps;
        w.device.host_provenance = cases[i].host;
        w.topology.nvlink.from.provenance = cases[i].link;
        w.topology.nvlink.latency_provenance = cases[i].latency;
        w.topology.nvlink.ctas_provenance = cases[i].ctas;
        w.params.framework = cases[i].framework == 1   ? host
                             : cases[i].framework == 2 ? copies
                                                       : NULL;
        result = world_run(&w);
        ck_assert_msg(result->provenance == cases[i].weakest, "case %zu: %s", i,
                      lh_provenance_names[result->provenance]);
        world_clear(&w);
    }
}
END_TEST

/* A merge is that of a slice if the sum has more parts, or follows a block that omits the first
 * query; the first merge only writes. */
START_TEST(sim_merges_of_slices_copy)
{
    g_autoptr(GArray) no_curves = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    const LhDevice device = { .kernels = no_curves,
                              .matrix_rate = 1e12,
                              .memory_bandwidth = 1e12,
                              .memory_efficiency = 1,
                              .sm_count = 1,
                              .tile_rows = 128 };
    LhSlot slots[] = { { .dtype = LH_DTYPE_BF16, .parts = 2 },
                       { .dtype = LH_DTYPE_FP32, .parts = 2 } };
    const LhProgram program = { .params = attention(1, 16384, 32, 32, 128),
                                .slots = slots,
                                .slots_count = 2 };
    g_autoptr(LhFramework) f = framework("\"kernels\": {" FACT("merge_slice", "8") "}");
    const LhOp whole = { .kind = LH_OP_COMPUTE,
                         .compute = { .kernel = LH_KERNEL_ID_merge_lse,
                                      .args = block(1024, 0, 0, LH_MASK_EMPTY),
                                      .regions_count = 2,
                                      .regions = { { .slot = 0, .count = 2 },
                                                   { .slot = 1, .count = 2 } } } };
    const LhTime slice = 8 * 1024 * 32 * 128;
    LhOp op = whole,
         attend = { .kind = LH_OP_COMPUTE,
                    .compute = { .kernel = LH_KERNEL_ID_attention_block,
                                 .args = block(1024, 1024, 1024 * 1023 / 2, LH_MASK_CAUSAL) } };
    LhCost cost;

    lh_cost_init(&cost, LH_COST_DEVICE, &device);
    ck_assert_int_eq(added(f, &program, &cost, &op), 0);
    op.compute.regions[1].count = 1;
    ck_assert_int_eq(added(f, &program, &cost, &op), slice);
    op.compute.args.first = true;
    ck_assert_int_eq(added(f, &program, &cost, &op), 0);
    ck_assert_int_eq(added(f, &program, &cost, &attend), 0);
    ck_assert_int_eq(added(f, &program, &cost, &whole), 0);
    attend.compute.args.shift = -1;
    ck_assert_int_eq(added(f, &program, &cost, &attend), 0);
    ck_assert_int_eq(added(f, &program, &cost, &whole), slice);
    op = whole;
    op.compute.kernel = LH_KERNEL_ID_merge;
    ck_assert_int_eq(added(f, &program, &cost, &op), 0);
    lh_cost_clear(&cost);
}
END_TEST

/* A ring waits for a host that is slower than the kernels. */
START_TEST(sim_hosts_hold_up_calls)
{
    const LhProgramParams params = attention(4, 4096, 4, 4, 128);
    g_autoptr(LhFramework) f = framework("\"attention_call\": {" FACT("host_s", "0.01") "}");
    g_autoptr(LhSimResult) result = NULL, slow = NULL;
    World w;

    world_init(&w, "dgx-a100-80g", schedule("ring", &params));
    result = world_run(&w);
    w.params.framework = f;
    slow = world_run(&w);
    ck_assert_int_lt(result->makespan_ps, LH_PS_PER_S / 100);
    /* Forward 4 calls, backward 4; rank 3 has all of them. */
    ck_assert_int_ge(slow->makespan_ps, 8 * LH_PS_PER_S / 100);
    ck_assert_int_lt(slow->makespan_ps, 8 * LH_PS_PER_S / 100 + result->makespan_ps);
    world_clear(&w);
}
END_TEST

/* A call of few kernels, sizes, masks, types and numbers of parts: @draw of a sequence. */
static LhOp
drawn_call(uint64_t draw)
{
    const LhKernelId kernels[] = { LH_KERNEL_ID_attention_fwd, LH_KERNEL_ID_attention_bwd,
                                   LH_KERNEL_ID_merge, LH_KERNEL_ID_copy, LH_KERNEL_ID_cast };
    const uint64_t bits = lh_rng_bits(5, draw, 0);
    const uint64_t nq = UINT64_C(512) << (bits & 1), nk = UINT64_C(512) << (bits >> 1 & 3);
    LhOp op = { .kind = LH_OP_COMPUTE };

    op.compute.kernel = kernels[(bits >> 8) % G_N_ELEMENTS(kernels)];
    op.compute.args = block(nq, nk, nq * nk, (bits >> 3 & 1) ? LH_MASK_CAUSAL : LH_MASK_FULL);
    op.compute.args.heads = 32 >> (bits >> 4 & 1);
    op.compute.args.head_dim = (bits >> 5 & 7) == 0 ? 80 : 128;
    op.compute.args.first = (bits >> 16 & 1) != 0;
    op.compute.regions_count = 3;
    for (uint32_t i = 0; i < 3; i++)
        op.compute.regions[i] = (LhRegion){ .slot = (uint16_t)(bits >> 20 & 1),
                                            .part = (uint32_t)(bits >> (24 + i) & 1),
                                            .count = 1 + (uint32_t)(bits >> (28 + i) & 1) };
    return op;
}

/* Calls that come again, in any order, cost what they cost when they are the only ones. */
START_TEST(sim_calls_cost_the_same_again)
{
    g_autoptr(LhDevice) device = lh_device_load("h100-sxm", NULL);
    LhSlot slots[] = { { .dtype = LH_DTYPE_BF16 }, { .dtype = LH_DTYPE_FP32 } };
    const LhProgram program = { .params = attention(1, 16384, 32, 32, 128), .slots = slots };
    LhCost all;

    lh_cost_init(&all, LH_COST_DEVICE, device);
    for (uint64_t i = 0; i < 20000; i++) {
        const LhOp op = drawn_call(i);
        double occupancy, occupancy_alone;
        LhTime time;
        LhCost alone;

        all.provenance = LH_PROVENANCE_MEASURED;
        time = lh_cost_compute(&all, &program, &op, &occupancy);
        lh_cost_init(&alone, LH_COST_DEVICE, device);
        ck_assert_int_eq(time, lh_cost_compute(&alone, &program, &op, &occupancy_alone));
        ck_assert(occupancy == occupancy_alone);
        ck_assert(all.op_seconds.seconds == alone.op_seconds.seconds &&
                  all.op_seconds.error == alone.op_seconds.error &&
                  all.op_seconds.judged == alone.op_seconds.judged);
        ck_assert_int_eq(all.provenance, alone.provenance);
        lh_cost_clear(&alone);
    }
    lh_cost_clear(&all);
}
END_TEST

LH_TEST_MAIN("sim_cost", sim_one_rank_costs_one_device, sim_kernel_times_are_the_formulas,
             sim_costs_say_how_far_to_trust_them, sim_traffic_is_of_the_operands_type,
             sim_kernels_by_position_take_their_curve, sim_products_go_by_tiles,
             sim_products_in_fp32_take_their_rate, sim_layers_go_by_shape_and_traffic,
             sim_dense_flops_are_products, sim_matrix_products_run_at_a_share_of_the_peak,
             sim_other_cost_modes_count_attention, sim_compute_streams_fill_the_last_wave,
             sim_calls_are_surrounded_by_copies, sim_merges_of_slices_copy,
             sim_calls_are_trusted_as_their_file, sim_runs_are_trusted_as_the_weakest_part,
             sim_hosts_hold_up_calls, sim_calls_cost_the_same_again)
