/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muon in training steps: bytes of its states, flops of its products, proof, and execution against
 * one rank in fp64; a part that is orthogonalised without a shard, or with another one, is found.
 */
#include "execute/execute.h"
#include "execute/step_compare.h"
#include "execute/step_numerics.h"
#include "program/live.h"
#include "program/work.h"
#include "recording.h"
#include "run_tests.h"
#include "share.h"
#include "step/formulas.h"
#include "steps.h"
#include "verify/verify.h"

#include <math.h>
#include <string.h>

#define SEED 7
#define DEADLINE_US 20000000

#define MUON(...)                                                                                  \
    {                                                                                              \
        .optimizer = LH_OPTIMIZER_MUON, .steps = 5, .momentum = 0.9, .extra_scale = 0.2,           \
        __VA_ARGS__                                                                                \
    }

/* Whole batches of matrices and rests of them, all kinds of weights, shared key-value heads. */
static const TinyStep different[] = {
    { .schedule = "zigzag", .muon = MUON(.nesterov = true) },
    { .schedule = "zigzag", .data = 3, .groups = 2, .micro_batches = 2, .muon = MUON(.nesterov = false) },
    { .schedule = "ring", .tensor = 4, .groups = 2, .context = 2, .muon = MUON(.nesterov = false) },
    { .schedule = "ring", .tensor = 4, .groups = 2, .muon = MUON(.tp_mode = LH_MUON_BLOCKWISE) },
    { .schedule = "zigzag",
      .stages = 2,
      .tensor = 2,
      .data = 2,
      .layers = 4,
      .tied = true,
      .muon = MUON(.scale_mode = LH_MUON_SHAPE_SCALING, .coefficients = LH_MUON_SIMPLE) },
    { .schedule = "zigzag",
      .tensor = 2,
      .data = 2,
      .context = 2,
      .experts = 4,
      .shared = 1,
      .dense = 1,
      .muon = MUON(.nesterov = true) },
    { .schedule = "lasp2",
      .linear = true,
      .gate = true,
      .tensor = 2,
      .context = 2,
      .muon = MUON(.scale_mode = LH_MUON_UNIT_RMS_NORM) },
    { .schedule = "zigzag",
      .gelu = true,
      .layer_norm = true,
      .data = 4,
      .layers = 5,
      .muon = { .optimizer = LH_OPTIMIZER_MUON,
                .steps = 3,
                .momentum = 0.5,
                .extra_scale = 1,
                .coefficients = LH_MUON_POLAR_EXPRESS } },
};

/* A step of these with every kind of sharding; types of weights and states vary. */
static TinyStep
nth_step(unsigned k)
{
    const unsigned i = k % G_N_ELEMENTS(different), shard = k / G_N_ELEMENTS(different);
    TinyStep tiny = different[i];

    tiny.shard = (LhShard)shard;
    tiny.dtype = (i + shard) % 3 == 2 ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
    tiny.behaviour.clip = (i + shard) % 2 == 0 ? 0.5 : 0;
    tiny.behaviour.gradients_fp32 = (i + shard) % 2 != 0;
    tiny.behaviour.gradients_stay = tiny.shard < LH_SHARD_ZERO2;
    tiny.behaviour.reduce_each = true;
    if (tiny.dtype == LH_DTYPE_BF16 && shard % 2 != 0)
        tiny.behaviour.moments = LH_MOMENTS_16BIT;
    tiny.behaviour.no_master = tiny.dtype == LH_DTYPE_BF16 && (i + shard) % 4 == 3;
    return tiny;
}
#define STEPS_OF_ALL (G_N_ELEMENTS(different) * LH_SHARDS)

static LhProgram *
program_of(const TinyStep *tiny)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = tiny_step(tiny, &error);

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    return program;
}

/* ---- proof ---- */

static bool
is_proven(const LhProgram *program)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    for (guint i = 0; g_getenv("SHOW") != NULL && i < verdict->findings->len; i++)
        g_printerr("%s\n", g_array_index(verdict->findings, LhFinding, i).message);
    return verdict->findings_total == 0;
}

START_TEST(steps_are_proven)
{
    for (unsigned k = 0; k < STEPS_OF_ALL; k++) {
        const TinyStep tiny = nth_step(k);
        g_autoptr(LhProgram) program = NULL;

        if (!test_takes_of(k, 7))
            continue;
        program = program_of(&tiny);
        ck_assert_msg(is_proven(program), "step %u", k);
    }
}
END_TEST

/* ---- runs ---- */

static void
compare(const TinyStep *tiny, const LhRunHooks *hooks, LhErrorReport *report)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = program_of(tiny);
    g_autoptr(LhStepNumerics) numerics = lh_step_numerics_new(program, SEED, false);
    LhStepLoad load = { .numerics = numerics };
    const LhRunParams params = {
        .program = program,
        .backend = &lh_backend_cpu,
        .deadline_us = DEADLINE_US,
        .hooks = hooks,
        .load = lh_step_load,
        .load_data = &load,
    };
    g_autoptr(LhRunResult) result = lh_execute(&params, &error);

    ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
    lh_step_numerics_advance(numerics, 1);
    lh_step_compare(numerics, result, report);
}

START_TEST(runs_equal_fp64)
{
    for (unsigned k = 0; k < STEPS_OF_ALL; k++) {
        const TinyStep tiny = nth_step(k);
        g_auto(LhErrorReport) report = { 0 };

        if (!test_takes_of(k, 7))
            continue;
        compare(&tiny, NULL, &report);
        for (uint32_t i = 0; i < report.rows_count; i++) {
            if (g_getenv("SHOW") != NULL)
                g_printerr("step %u: dtype %d %s: rel %g in units %g on the mean and %g at worst\n", k, (int)tiny.dtype,
                          report.rows[i].name, report.rows[i].rel_l2, report.rows[i].mean, report.rows[i].row);
            else
            ck_assert_msg(report.rows[i].ok, "step %u: %s: in units %g on the mean and %g at worst",
                          k, report.rows[i].name, report.rows[i].mean, report.rows[i].row);
        }
        if (g_getenv("SHOW") == NULL)
        ck_assert(report.ok);
    }
}
END_TEST

LH_TEST_MAIN("step_muon", steps_are_proven, runs_equal_fp64)
