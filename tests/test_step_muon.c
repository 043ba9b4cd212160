/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Muon in training steps: bytes of its states, flops of its products, proof, and execution against
 * one rank in fp64; a part that is orthogonalised without a shard, or with another one, is found.
 */
#include "execute/execute.h"
#include "execute/step_compare.h"
#include "execute/step_numerics.h"
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
    { .schedule = "zigzag",
      .data = 3,
      .groups = 2,
      .micro_batches = 2,
      .muon = MUON(.nesterov = false) },
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

/* Whether a finding of @program has @message. */
static bool
finds(const LhProgram *program, const char *message)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    bool found = false;

    for (guint i = 0; i < verdict->findings->len; i++)
        found |= strstr(g_array_index(verdict->findings, LhFinding, i).message, message) != NULL;
    return found;
}

/* Exchanges the places of the updates of two layers on one rank, so that two matrices each have a
 * piece of the other one. */
START_TEST(a_piece_of_another_matrix_is_found)
{
    const TinyStep tiny = { .schedule = "zigzag",
                            .data = 3,
                            .layers = 3,
                            .shard = LH_SHARD_ZERO2,
                            .muon = MUON(.nesterov = false) };

    for (uint32_t rank = 0; rank < 3; rank++) {
        g_autoptr(LhProgram) program = program_of(&tiny);
        Recording *recording = recording_new(program);
        LhRegion *updates[2] = { NULL, NULL };

        for (uint32_t id = 0; id < recording_count(recording, rank); id++) {
            LhOp *op = recording_op(recording, rank, id);

            if (op->kind == LH_OP_COMPUTE && op->compute.kernel == LH_KERNEL_ID_muon_momentum &&
                op->layer < 2 && updates[op->layer] == NULL)
                updates[op->layer] = &op->compute.regions[3];
        }
        ck_assert(updates[0] != NULL && updates[1] != NULL);
        ck_assert_uint_ne(updates[0]->part, updates[1]->part);
        updates[0]->part ^= updates[1]->part;
        updates[1]->part ^= updates[0]->part;
        updates[0]->part ^= updates[1]->part;
        /* the first piece decides which matrix it is, and the label is another one's */
        ck_assert_msg(
            finds(&recording->program, rank == 0 ? "is called for, or labelled with, other matrices"
                                                 : "its operand slices; needed: the update of"),
            "rank %u", rank);
        recording_free(recording);
    }
}
END_TEST

/* Programs that are consistent, but not of the optimizer that the step's parameters say. */
START_TEST(other_optimizers_are_found)
{
    const TinyStep muon = { .schedule = "zigzag", .muon = MUON(.nesterov = false) };
    const TinyStep adam = { .schedule = "zigzag" };
    g_autoptr(LhProgram) more = program_of(&muon), none = program_of(&muon);
    g_autoptr(LhProgram) by_adam = program_of(&adam);

    ((LhStepParams *)lh_step_params(more))->muon.steps++;
    ck_assert(finds(more, "needed: whole matrices after all Newton-Schulz steps"));
    ((LhStepParams *)lh_step_params(none))->muon.optimizer = LH_OPTIMIZER_ADAM;
    ck_assert(finds(none, "works on a weight that Muon does not update"));
    ((LhStepParams *)lh_step_params(by_adam))->muon = muon.muon;
    ck_assert(finds(by_adam, "by AdamW, which is Muon's"));
}
END_TEST

START_TEST(coefficients_are_those_published)
{
    static const double last[LH_MUON_COEFFICIENTS][3] = {
        [LH_MUON_QUINTIC] = { 3.9505, -6.3029, 2.6377 }, /* the second again */
        [LH_MUON_SIMPLE] = { 3.4445, -4.7750, 2.0315 },
        [LH_MUON_POLAR_EXPRESS] = { 1.8564, -1.2132, 0.3568 },
    };

    for (unsigned i = 0; i < LH_MUON_COEFFICIENTS; i++) {
        const TinyStep tiny = { .schedule = "zigzag",
                                .muon = { .optimizer = LH_OPTIMIZER_MUON,
                                          .steps = 7,
                                          .momentum = 0.9,
                                          .extra_scale = 1,
                                          .coefficients = (uint8_t)i } };
        g_autoptr(LhProgram) program = program_of(&tiny);
        Recording *recording = recording_new(program);
        const LhKernelArgs *a = NULL;

        for (uint32_t id = 0; id < recording_count(recording, 0); id++) {
            const LhOp *op = recording_op(recording, 0, id);

            if (op->kind == LH_OP_COMPUTE && op->compute.kernel == LH_KERNEL_ID_muon_step)
                a = &op->compute.args;
        }
        ck_assert_ptr_nonnull(a);
        ck_assert(a != NULL && a->muon.a == last[i][0] && a->muon.b == last[i][1] &&
                  a->muon.c == last[i][2]);
        recording_free(recording);
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
        for (uint32_t i = 0; i < report.rows_count; i++)
            ck_assert_msg(report.rows[i].ok, "step %u: %s: in units %g on the mean and %g at worst",
                          k, report.rows[i].name, report.rows[i].mean, report.rows[i].row);
        ck_assert(report.ok);
    }
}
END_TEST

/* Does nothing, or leaves out a matrix: of the first call of @kernel on layer 1. */
typedef struct {
    LhKernelId kernel;
    gint hits; /* atomic */
} Omitted;

static enum lh_status
call_omitting(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at,
              const LhCall *call)
{
    Omitted *omitted = data;

    (void)rank;
    if (op->compute.kernel == omitted->kernel && op->layer == 1) {
        g_atomic_int_inc(&omitted->hits);
        return LH_STATUS_OK;
    }
    return at->device->call(at->state, op->compute.kernel, call, at->stream);
}

START_TEST(omissions_are_beyond_the_gates)
{
    static const char *const kernels[] = {
        "muon_momentum", "muon_join",   "muon_gram",       "muon_square",       "muon_step",
        "muon_split",    "muon_update", "muon_momentum16", "muon_update_direct"
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(kernels); i++) {
        const bool other = i >= 7; /* kernels of other types of states */
        Omitted omitted = { .kernel = lh_kernel_find(kernels[i]) };
        const LhRunHooks hooks = { .data = &omitted, .call = call_omitting };
        const TinyStep tiny = { .schedule = "zigzag",
                                .data = 2,
                                .tensor = 2,
                                .shard = (LhShard)(i % LH_SHARDS),
                                .muon = MUON(.nesterov = true),
                                .behaviour = { .no_master = other,
                                               .moments =
                                                   other ? LH_MOMENTS_16BIT : LH_MOMENTS_FP32 } };
        g_auto(LhErrorReport) report = { 0 };

        if (!test_takes_of(i, 5))
            continue;
        compare(&tiny, &hooks, &report);
        ck_assert_msg(omitted.hits > 0, "%s: has no target", kernels[i]);
        ck_assert_msg(!report.ok, "%s: within the gates", kernels[i]);
    }
}
END_TEST

/* Momenta are read back, and mixed with gradients: losses of several steps are those of fp64. */
START_TEST(momenta_are_carried_on)
{
    for (unsigned k = 0; k < 4; k++) {
        TinyStep tiny = { .schedule = "zigzag",
                          .tensor = 2,
                          .data = 2,
                          .shard = (LhShard)k,
                          .muon = MUON(.nesterov = k % 2 == 0) };
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        g_autoptr(LhSetup) setup = NULL;
        g_autoptr(LhProgram) program = NULL;
        g_autoptr(LhExecuted) executed = NULL;
        g_autoptr(GError) error = NULL;
        const LhExecuteParams params = {
            .backend = &lh_backend_cpu, .steps = 5, .new_tokens = true, .repeat = 1
        };

        if (!test_takes_of(k, 3))
            continue;
        tiny.dtype = k % 2 == 0 ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
        program = program_of(&tiny);
        scenario->ranks = lh_program_ranks(program);
        scenario->seed = SEED;
        setup = lh_setup_new(scenario, &error);
        ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
        executed = lh_execute_program(setup, program, &params, &error);
        ck_assert_msg(executed != NULL, "%s", error != NULL ? error->message : "");
        for (uint32_t i = 0; i < executed->errors.rows_count; i++)
            ck_assert_msg(executed->errors.rows[i].ok, "%u: %s: in units %g on the mean", k,
                          executed->errors.rows[i].name, executed->errors.rows[i].mean);
        ck_assert_msg(lh_executed_ok(executed), "%u", k);
        ck_assert(executed->peak_bytes.equal && executed->flops.equal);
    }
}
END_TEST

/* ---- closed forms by hand ---- */

/* Hidden size 64, MLP of 192: 12 elements of q, 2 x 12 of kv and so on, in units of 64 x 64. */
START_TEST(states_and_flops_are_counted)
{
    const uint64_t h = 64, f = 192, layers = 5;
    const uint64_t muon = layers * (4 * h * h + 3 * h * f);
    /* r = 64 everywhere: q, k, v and out are square, gate, up and down are 64 x 192 */
    const uint64_t square = 6 * h * h * h + 3 * h * h + 2 * h * h;
    const uint64_t wide = 4 * h * h * f + 2 * h * h * h + 3 * h * h + 2 * h * f;

    for (unsigned shard = 0; shard < LH_SHARDS; shard++) {
        const uint64_t pieces = shard == LH_SHARD_DDP ? 1 : 2;
        TinyStep tiny = {
            .schedule = "zigzag", .data = 2, .layers = (uint32_t)layers, .shard = (LhShard)shard
        };
        g_autoptr(LhProgram) adam = program_of(&tiny), program = NULL;
        uint64_t more = 0;

        tiny.muon = (LhMuonParams)MUON(.nesterov = false);
        program = program_of(&tiny);
        ck_assert_uint_eq(lh_step_state_bytes(adam, 0).optimizer -
                              lh_step_state_bytes(program, 0).optimizer,
                          4 * muon / pieces);
        for (uint32_t rank = 0; rank < 2; rank++)
            more += lh_step_dense_flops(program, rank) - lh_step_dense_flops(adam, rank);
        ck_assert_uint_eq(more, 5 * layers * (4 * square + 3 * wide) * (2 / pieces));
        /* rank 0 has 3 of q, 2 of kv, 3 of out, 2 of up and 3 of down */
        if (pieces == 2)
            ck_assert_uint_eq(lh_step_dense_flops(program, 0) - lh_step_dense_flops(adam, 0),
                              5 * (10 * square + 7 * wide));
    }
}
END_TEST

/* ---- options ---- */

static LhSetup *
setup_of(const char *members, GError **error)
{
    g_autofree char *text = g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"step\": true, "
                                            "\"schedule\": [\"zigzag\"], \"ranks\": 2%s}",
                                            members);
    static LhScenario *scenario;

    lh_scenario_free(scenario);
    scenario = lh_scenario_parse("s.json", text, strlen(text), error);
    return scenario != NULL ? lh_setup_new(scenario, error) : NULL;
}

static void
check_refusal(const char *members, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSetup) setup = setup_of(members, &error);
    g_autoptr(LhProgram) program = NULL;

    if (setup != NULL)
        program = lh_step_new(&setup->step->params, &error);
    ck_assert_msg(program == NULL, "%s", members);
    ck_assert_msg(strstr(error->message, message) != NULL, "%s", error->message);
}

START_TEST(options_are_read_or_refused)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSetup) adam = setup_of("", &error);
    g_autoptr(LhSetup) setup =
        setup_of(", \"optimizer\": \"muon\", \"muon_num_ns_steps\": 6, \"muon_momentum\": 0.5, "
                 "\"muon_nesterov\": true, \"muon_scale_mode\": \"unit_rms_norm\", "
                 "\"muon_extra_scale_factor\": 0.2, \"muon_tp_mode\": \"blockwise\", "
                 "\"muon_coefficient_type\": \"polar_express\"",
                 &error);
    const LhMuonParams *m;

    ck_assert_msg(setup != NULL && adam != NULL, "%s", error != NULL ? error->message : "");
    m = &setup->step->params.muon;
    ck_assert(m->optimizer == LH_OPTIMIZER_MUON && m->steps == 6 && m->nesterov);
    ck_assert(m->momentum == 0.5 && m->extra_scale == 0.2);
    ck_assert(m->scale_mode == LH_MUON_UNIT_RMS_NORM && m->tp_mode == LH_MUON_BLOCKWISE);
    ck_assert_int_eq(m->coefficients, LH_MUON_POLAR_EXPRESS);
    ck_assert_int_eq(adam->step->params.muon.optimizer, LH_OPTIMIZER_ADAM);
    check_refusal(", \"muon_num_ns_steps\": 5", "needs the optimizer muon");
    check_refusal(", \"muon_nesterov\": true, \"optimizer\": \"adam\"", "needs the optimizer muon");
    check_refusal(", \"optimizer\": \"muon\", \"lora_rank\": 4", "of which LoRA trains none");
    check_refusal(", \"optimizer\": \"muon\", \"dtype\": \"fp16\"", "allowed element types: bf16");
    check_refusal(", \"optimizer\": \"muon\", \"exp_avg_dtype\": \"8bit\"", "no 8-bit form");
    check_refusal(", \"optimizer\": \"muon\", \"pass\": \"fwd\"", "has no optimizer");
    check_refusal(", \"optimizer\": \"muon\", \"muon_num_ns_steps\": 101", "100");
}
END_TEST

/* A matrix with fewer elements than leave each rank a piece. */
START_TEST(tiny_matrices_are_refused)
{
    const TinyStep tiny = { .schedule = "zigzag",
                            .data = 100,
                            .experts = 2,
                            .shard = LH_SHARD_ZERO1,
                            .muon = MUON(.nesterov = false) };
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(tiny_step(&tiny, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "leave some of 100 ranks without any"));
}
END_TEST

LH_TEST_MAIN("step_muon", steps_are_proven, a_piece_of_another_matrix_is_found,
             other_optimizers_are_found, coefficients_are_those_published, runs_equal_fp64,
             omissions_are_beyond_the_gates, momenta_are_carried_on, states_and_flops_are_counted,
             options_are_read_or_refused, tiny_matrices_are_refused)
