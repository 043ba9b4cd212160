/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizers of a training step: every element type of moments, with an fp32 copy of the weights
 * and without. Bytes of their states, proof, and execution against one rank in fp64 that rounds the
 * same states; mistakes in what a kernel stores exceed the gates, and the verifier finds another
 * kernel and another type.
 */
#include "base/rng.h"
#include "execute/execute.h"
#include "execute/step_compare.h"
#include "execute/step_numerics.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/rows.h"
#include "kernels/sizes.h"
#include "program/live.h"
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

/* An optimizer; fp32 activations have neither 16-bit moments nor a copy of the weights. */
typedef struct {
    LhDtype dtype;
    LhMoments moments;
    bool no_master;
    const char *kernel;
    double bytes; /* of states per parameter, without the rounding of blocks */
} Optimizer;

static const Optimizer optimizers[] = {
    { LH_DTYPE_BF16, LH_MOMENTS_FP32, false, "adam", 12 },
    { LH_DTYPE_BF16, LH_MOMENTS_16BIT, false, "adam_moments16", 8 },
    { LH_DTYPE_BF16, LH_MOMENTS_8BIT, false, "adam_moments8", 4 + 2 * (1 + 4 / 256.0) },
    { LH_DTYPE_BF16, LH_MOMENTS_FP32, true, "adam_direct", 8 },
    { LH_DTYPE_BF16, LH_MOMENTS_16BIT, true, "adam_direct_moments16", 4 },
    { LH_DTYPE_BF16, LH_MOMENTS_8BIT, true, "adam_direct_moments8", 2 * (1 + 4 / 256.0) },
    { LH_DTYPE_FP16, LH_MOMENTS_16BIT, false, "adam_moments16", 8 },
    { LH_DTYPE_FP16, LH_MOMENTS_16BIT, true, "adam_direct_moments16", 4 },
    { LH_DTYPE_FP16, LH_MOMENTS_8BIT, true, "adam_direct_moments8", 2 * (1 + 4 / 256.0) },
    { LH_DTYPE_FP32, LH_MOMENTS_FP32, false, "adam_fp32", 8 },
    { LH_DTYPE_FP32, LH_MOMENTS_8BIT, false, "adam_direct_moments8", 2 * (1 + 4 / 256.0) },
};

/* Makes @tiny a step with optimizer @o. */
static void
take_optimizer(TinyStep *tiny, const Optimizer *o)
{
    tiny->dtype = o->dtype;
    tiny->behaviour.moments = o->moments;
    tiny->behaviour.no_master = o->no_master;
}

static LhProgram *
program_of(const TinyStep *tiny)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = tiny_step(tiny, &error);

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    return program;
}

/* ---- runs ---- */

/* Runs the first step of @tiny with @hooks and compares it. */
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

static const TinyStep different[] = {
    { .schedule = "zigzag", .heads = 16 },
    { .schedule = "zigzag", .data = 3, .groups = 2, .micro_batches = 2 },
    { .schedule = "ring", .tensor = 4, .groups = 2, .context = 2 },
    { .schedule = "zigzag", .stages = 2, .tensor = 2, .data = 2, .layers = 4, .tied = true },
    { .schedule = "zigzag", .tensor = 2, .data = 2, .context = 2, .experts = 4 },
};

/* A step of these with every optimizer; clipping, sharding and the type of gradients vary. */
static TinyStep
nth_step(unsigned k)
{
    const unsigned m = k / G_N_ELEMENTS(optimizers), i = k % G_N_ELEMENTS(optimizers);
    TinyStep tiny = different[m % G_N_ELEMENTS(different)];

    take_optimizer(&tiny, &optimizers[i]);
    tiny.shard = (LhShard)((i + m) % LH_SHARDS);
    tiny.behaviour.clip = (i + m) % 3 == 0 ? 0.5 : 0;
    tiny.behaviour.gradients_fp32 = (i + m) % 2 != 0;
    tiny.behaviour.gradients_stay = tiny.shard < LH_SHARD_ZERO2;
    tiny.behaviour.reduce_each = true;
    return tiny;
}
#define STEPS_OF_ALL (G_N_ELEMENTS(different) * G_N_ELEMENTS(optimizers))

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

/* ---- mistakes of kernels ---- */

typedef enum {
    NOT_AT_ALL,
    TWICE,
    MOMENTS_LOST,
    SCALES_LOST,
    WEIGHTS_LOST,
    SECOND_OF_NO_GRADIENT,
    OTHER_TYPE,
    MISTAKES
} Mistake;

static const char *const mistake_names[MISTAKES] = {
    [NOT_AT_ALL] = "no update",
    [TWICE] = "two updates",
    [MOMENTS_LOST] = "moments are not stored",
    [SCALES_LOST] = "scales are not stored",
    [WEIGHTS_LOST] = "weights are not stored",
    [SECOND_OF_NO_GRADIENT] = "second moments are those of half the gradient",
    [OTHER_TYPE] = "moments are stored in another type",
};

typedef struct {
    Mistake mistake;
    LhKernelId kernel;
    gint hits; /* atomic */
} Injected;

static int
operand_of(LhKernelId kernel, const char *name)
{
    const LhOperand *operands = lh_kernels[kernel]->operands;

    for (int i = 0; operands[i].access != LH_OPERAND_END; i++) {
        if (strcmp(operands[i].name, name) == 0)
            return i;
    }
    return -1;
}

/* Calls with a copy of operand @i, which is dropped. */
static enum lh_status
call_with_copy(LhKernelId kernel, const LhPlaceOfWork *at, const LhCall *call, int i)
{
    LhCall wrong = *call;
    g_autofree unsigned char *copy =
        g_memdup2(call->operands[i].data, call->operands[i].part_bytes * call->operands[i].parts);

    wrong.operands[i].data = copy;
    return at->device->call(at->state, kernel, &wrong, at->stream);
}

/* Halves what is stored for the roots of second moments: numbers, or scales. */
static void
halve_second(const LhCall *call, const Injected *in)
{
    const LhView *moments = &call->operands[operand_of(in->kernel, "moments")];
    const uint64_t count = call->args->optimizer.count;
    const int scales = operand_of(in->kernel, "scales");

    for (uint64_t i = 0; scales < 0 && i < count; i++)
        lh_element_put(moments->data, moments->storage, count + i,
                       lh_element_get(moments->data, moments->storage, count + i) / 4);
    for (uint64_t i = lh_moment_scales(count) / 2; scales >= 0 && i < lh_moment_scales(count); i++)
        ((float *)(void *)call->operands[scales].data)[i] /= 2;
}

static enum lh_status
call_wrong(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    Injected *in = data;
    LhCall wrong = *call;
    enum lh_status status;

    (void)rank;
    if (op->compute.kernel != in->kernel || op->layer != 1)
        return at->device->call(at->state, op->compute.kernel, call, at->stream);
    g_atomic_int_inc(&in->hits);
    switch (in->mistake) {
    case NOT_AT_ALL:
        return LH_STATUS_OK;
    case MOMENTS_LOST:
        return call_with_copy(in->kernel, at, call, operand_of(in->kernel, "moments"));
    case SCALES_LOST:
        return call_with_copy(in->kernel, at, call, operand_of(in->kernel, "scales"));
    case WEIGHTS_LOST:
        return call_with_copy(in->kernel, at, call, operand_of(in->kernel, "w"));
    case OTHER_TYPE:
        wrong.operands[operand_of(in->kernel, "moments")].storage =
            call->operands[operand_of(in->kernel, "w")].storage == LH_STORAGE_BF16
                ? LH_STORAGE_FP16
                : LH_STORAGE_BF16;
        return at->device->call(at->state, in->kernel, &wrong, at->stream);
    default:
        break;
    }
    status = at->device->call(at->state, in->kernel, call, at->stream);
    if (in->mistake == SECOND_OF_NO_GRADIENT)
        halve_second(call, in);
    return in->mistake == TWICE && status == LH_STATUS_OK
               ? at->device->call(at->state, in->kernel, call, at->stream)
               : status;
}

static bool
applies(const Optimizer *o, Mistake mistake)
{
    return (mistake != SCALES_LOST || o->moments == LH_MOMENTS_8BIT) &&
           (mistake != OTHER_TYPE || o->moments == LH_MOMENTS_16BIT) &&
           (mistake != WEIGHTS_LOST || o->dtype != LH_DTYPE_FP32);
}

START_TEST(mistakes_are_beyond_the_gates)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(optimizers) * MISTAKES; i++) {
        const Optimizer *o = &optimizers[i / MISTAKES];
        Injected in = { .mistake = (Mistake)(i % MISTAKES), .kernel = lh_kernel_find(o->kernel) };
        const LhRunHooks hooks = { .data = &in, .call = call_wrong };
        TinyStep tiny = { .schedule = "zigzag", .context = 2, .shard = (LhShard)(i % LH_SHARDS) };
        g_auto(LhErrorReport) report = { 0 };

        if (!applies(o, in.mistake) || !test_takes_of(i, 11))
            continue;
        take_optimizer(&tiny, o);
        compare(&tiny, &hooks, &report);
        ck_assert_msg(in.hits > 0, "%s: has no target", o->kernel);
        ck_assert_msg(!report.ok, "%s (%s): %s: within the gates", o->kernel,
                      lh_dtype_names[o->dtype], mistake_names[in.mistake]);
    }
}
END_TEST

/* ---- 8-bit kernels ---- */

enum { PARAMETERS = 600, BLOCKS = 3, BLOCK = 256 };

typedef struct {
    double first[PARAMETERS], second[PARAMETERS], w[PARAMETERS];
} Plain;

/* Rounds to multiples of a @codes-th of the largest number of the block. */
static void
round_block(double *x, unsigned count, double codes)
{
    double largest = 0;

    for (unsigned i = 0; i < count; i++)
        largest = fmax(largest, fabs(x[i]));
    for (unsigned i = 0; i < count; i++)
        x[i] = round(x[i] / largest * codes) * largest / codes;
}

static void
plain_step(Plain *p, const float *g, int t)
{
    double roots[PARAMETERS];

    for (unsigned i = 0; i < PARAMETERS; i++) {
        const double m = 0.9 * p->first[i] + 0.1 * (double)g[i];
        const double v = 0.99 * p->second[i] + 0.01 * (double)g[i] * (double)g[i];

        p->w[i] -= 0.02 * m / (1 - pow(0.9, t)) / (sqrt(v / (1 - pow(0.99, t))) + 1e-3);
        p->first[i] = m;
        roots[i] = sqrt(v);
    }
    for (unsigned i = 0; i < PARAMETERS; i += BLOCK) {
        round_block(p->first + i, MIN(PARAMETERS - i, BLOCK), 127);
        round_block(roots + i, MIN(PARAMETERS - i, BLOCK), 255);
    }
    for (unsigned i = 0; i < PARAMETERS; i++)
        p->second[i] = roots[i] * roots[i];
}

#define VIEW(array, kind)                                                                          \
    {                                                                                              \
        .data = (unsigned char *)(array), .parts = 1, .part_bytes = sizeof(array),                 \
        .storage = LH_STORAGE_##kind                                                               \
    }

/* Three steps of the 8-bit kernel on fp32 weights are those of its definition: it reads back what
 * it has stored, block by block. The last block is not full. */
START_TEST(blocks_are_stored_and_read)
{
    static float g[PARAMETERS], w[PARAMETERS], norm[1], clock[1], scales[2 * BLOCKS];
    static int8_t codes[2 * PARAMETERS];
    static Plain plain;
    LhKernelArgs args = { .optimizer = { PARAMETERS, 0.02, 0.9, 0.99, 1e-3 }, .first = true };
    const LhCall call = { .args = &args,
                          .operands = { VIEW(g, FP32), VIEW(norm, FP32), VIEW(clock, FP32),
                                        VIEW(codes, INT8), VIEW(scales, FP32), VIEW(w, FP32) } };

    memset(codes, 0x55, sizeof(codes));
    for (int t = 1; t <= 3; t++) {
        for (unsigned i = 0; i < PARAMETERS; i++)
            g[i] = (float)((lh_rng_uniform(SEED, (uint64_t)t, i) - 0.5) * (i < BLOCK ? 1 : 20));
        ck_assert_int_eq(lh_cpu_kernels[LH_KERNEL_ID_adam_direct_moments8]->fast(&call),
                         LH_STATUS_OK);
        plain_step(&plain, g, t);
        args.first = false;
        for (unsigned i = 0; i < PARAMETERS; i++) {
            const double scale = (double)scales[i / BLOCK];
            const double root =
                (double)scales[BLOCKS + i / BLOCK] * ((const uint8_t *)codes)[PARAMETERS + i];

            ck_assert_double_eq_tol((double)w[i], plain.w[i], 1e-6);
            ck_assert_double_eq_tol(codes[i] * scale, plain.first[i], 1e-6 * 127 * scale);
            ck_assert_double_eq_tol(root * root, plain.second[i],
                                    1e-6 * pow(255 * (double)scales[BLOCKS + i / BLOCK], 2));
        }
    }
}
END_TEST

/* ---- several steps ---- */

/* Moments are read back: losses of several steps are those of fp64 with the same roundings. */
START_TEST(states_are_carried_on)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(optimizers); i++) {
        TinyStep tiny = {
            .schedule = "zigzag", .tensor = 2, .data = 2, .shard = (LhShard)(i % LH_SHARDS)
        };
        g_autoptr(LhScenario) scenario = lh_scenario_new();
        g_autoptr(LhSetup) setup = NULL;
        g_autoptr(LhProgram) program = NULL;
        g_autoptr(LhExecuted) executed = NULL;
        g_autoptr(GError) error = NULL;
        const LhExecuteParams params = {
            .backend = &lh_backend_cpu, .steps = 6, .new_tokens = true, .repeat = 1
        };

        if (!test_takes_of(i + 4, 5))
            continue;
        take_optimizer(&tiny, &optimizers[i]);
        program = program_of(&tiny);
        scenario->ranks = lh_program_ranks(program);
        scenario->seed = SEED;
        setup = lh_setup_new(scenario, &error);
        ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
        executed = lh_execute_program(setup, program, &params, &error);
        ck_assert_msg(executed != NULL, "%s", error != NULL ? error->message : "");
        for (uint32_t k = 0; k < executed->errors.rows_count; k++)
            ck_assert_msg(executed->errors.rows[k].ok,
                          "%s: %s: in units %g on the mean, %g at worst", optimizers[i].kernel,
                          executed->errors.rows[k].name, executed->errors.rows[k].mean,
                          executed->errors.rows[k].row);
        ck_assert_msg(lh_executed_ok(executed), "%s", optimizers[i].kernel);
        ck_assert(executed->peak_bytes.equal && executed->flops.equal);
    }
}
END_TEST

/* ---- bytes ---- */

START_TEST(states_have_the_bytes_of_their_types)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(optimizers) * LH_SHARDS; i++) {
        const Optimizer *o = &optimizers[i / LH_SHARDS];
        const LhShard shard = (LhShard)(i % LH_SHARDS);
        TinyStep tiny = { .schedule = "zigzag", .data = 4, .heads = 32, .shard = shard };
        const double pieces = shard == LH_SHARD_DDP ? 1 : 4;
        g_autoptr(LhProgram) program = NULL;
        LhStepStateBytes bytes;
        double parameters;
        LhLive live;

        take_optimizer(&tiny, o);
        program = program_of(&tiny);
        bytes = lh_step_state_bytes(program, 0);
        parameters =
            (double)bytes.weights / lh_dtype_bytes(o->dtype) * (shard == LH_SHARD_FSDP ? 4 : 1);
        /* last blocks are not full, and pieces are rounded up */
        ck_assert_double_ge_tol((double)bytes.optimizer, o->bytes * parameters / pieces, 1);
        ck_assert_double_le((double)bytes.optimizer, 1.001 * o->bytes * parameters / pieces);
        lh_live_init(&live, program, 0);
        /* and a step counter for each weight */
        ck_assert_uint_ge(live.by_category[LH_CATEGORY_OPTIMIZER], bytes.optimizer);
        ck_assert_uint_le(live.by_category[LH_CATEGORY_OPTIMIZER], bytes.optimizer + 4 * 32);
    }
}
END_TEST

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
        g_autoptr(LhProgram) program = program_of(&tiny);

        if (test_takes_of(k, 7))
            ck_assert_msg(is_proven(program), "step %u", k);
    }
}
END_TEST

/* Changes the first call of kernel @from on rank 0 into one of @to. */
static void
change_kernel(Recording *r, LhKernelId from, LhKernelId to)
{
    for (uint32_t id = 0; id < recording_count(r, 0); id++) {
        LhOp *op = recording_op(r, 0, id);

        if (op->kind != LH_OP_COMPUTE || op->compute.kernel != from)
            continue;
        op->compute.kernel = to;
        return;
    }
    g_assert_not_reached();
}

/* Another kernel, another type of the states' slots, and states of another program are found. */
START_TEST(other_optimizers_are_found)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(optimizers); i++) {
        TinyStep tiny = { .schedule = "zigzag", .context = 2 };
        const LhKernelId kernel = lh_kernel_find(optimizers[i].kernel);
        g_autoptr(LhProgram) program = NULL;
        Recording *recording;

        take_optimizer(&tiny, &optimizers[i]);
        program = program_of(&tiny);
        ck_assert(is_proven(program));
        for (unsigned k = 0; k < G_N_ELEMENTS(optimizers); k++) {
            const LhKernelId other = lh_kernel_find(optimizers[k].kernel);

            if (other == kernel)
                continue;
            recording = recording_new(program);
            change_kernel(recording, kernel, other);
            ck_assert_msg(!is_proven(&recording->program), "%s in place of %s",
                          optimizers[k].kernel, optimizers[i].kernel);
            recording_free(recording);
        }
        for (uint32_t slot = 0; slot < program->slots_count; slot++) {
            const LhDtype dtype = program->slots[slot].dtype;

            if (program->slots[slot].kind != LH_TENSOR_MOMENTS)
                continue;
            program->slots[slot].dtype = dtype == LH_DTYPE_FP32 ? LH_DTYPE_FP16 : LH_DTYPE_FP32;
            ck_assert_msg(!is_proven(program), "%s: type of %s", optimizers[i].kernel,
                          program->slots[slot].name);
            program->slots[slot].dtype = dtype;
        }
    }
}
END_TEST

/* A program that is consistent, but of another optimizer than the step's parameters say. */
START_TEST(programs_of_other_optimizers_are_found)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(optimizers); i++) {
        TinyStep tiny = { .schedule = "zigzag" };
        g_autoptr(LhProgram) program = NULL;
        g_autoptr(LhVerdict) verdict = NULL;
        LhStepBehaviour *claimed;
        bool found = false;

        take_optimizer(&tiny, &optimizers[i]);
        program = program_of(&tiny);
        claimed = (LhStepBehaviour *)&lh_step_params(program)->behaviour;
        if (i % 2 == 0 || optimizers[i].dtype == LH_DTYPE_FP32)
            claimed->moments = (LhMoments)((claimed->moments + 1) % LH_MOMENTS);
        else
            claimed->no_master = !claimed->no_master;
        verdict = lh_verify(program);
        for (guint k = 0; k < verdict->findings->len; k++)
            found |= strstr(g_array_index(verdict->findings, LhFinding, k).message,
                            "other states than those of the step's optimizer") != NULL;
        ck_assert_msg(found, "%s", optimizers[i].kernel);
    }
}
END_TEST

/* ---- options and framework files ---- */

/* A step of @framework with options "field=value". Caller frees. */
static LhSetup *
setup_of(const char *framework, const char *const *options, LhScenario **scenario, GError **error)
{
    *scenario = lh_scenario_new();
    lh_scenario_replace(*scenario, "step", "true");
    lh_scenario_replace(*scenario, "schedule", "zigzag");
    lh_scenario_replace(*scenario, "ranks", "4");
    lh_scenario_replace(*scenario, "framework", framework);
    for (unsigned i = 0; options[i] != NULL; i += 2)
        lh_scenario_replace(*scenario, options[i], options[i + 1]);
    return lh_setup_new(*scenario, error);
}

/* Traffic is in proportion to 4 + 8 + 2 + 16 bytes of a megatron-lm.json, which has 30, and to 2 +
 * 4
 * + 8 of lightseq.json, which has 36. */
static const struct {
    const char *framework, *options[7];
    bool no_master, gradients_fp32;
    LhMoments moments;
    uint32_t traffic;
} choices[] = {
    { "megatron-lm", { NULL }, false, true, LH_MOMENTS_FP32, 30 },
    { "megatron-lm", { "exp_avg_dtype", "bf16" }, false, true, LH_MOMENTS_16BIT, 22 },
    { "megatron-lm",
      { "exp_avg_dtype", "8bit", "main_grads_dtype", "bf16" },
      false,
      false,
      LH_MOMENTS_8BIT,
      16 },
    { "megatron-lm",
      { "exp_avg_dtype", "bf16", "main_grads_dtype", "bf16", "main_params_dtype", "none" },
      true,
      false,
      LH_MOMENTS_16BIT,
      14 },
    { "megatron-lm", { "dtype", "fp32" }, false, true, LH_MOMENTS_FP32, 30 },
    { "lightseq", { NULL }, true, false, LH_MOMENTS_16BIT, 36 },
    { "lightseq", { "main_params_dtype", "fp32" }, false, false, LH_MOMENTS_16BIT, 51 },
    { "lightseq", { "exp_avg_dtype", "fp32" }, true, false, LH_MOMENTS_FP32, 56 },
};

START_TEST(options_precede_framework_files)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(choices); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhScenario) scenario = NULL;
        g_autoptr(LhSetup) setup =
            setup_of(choices[i].framework, choices[i].options, &scenario, &error);
        const LhStepBehaviour *b;

        ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
        b = &setup->step->params.behaviour;
        ck_assert_int_eq(b->no_master, choices[i].no_master);
        ck_assert_int_eq(b->gradients_fp32, choices[i].gradients_fp32);
        ck_assert_int_eq((int)b->moments, (int)choices[i].moments);
        ck_assert_uint_eq(b->optimizer_traffic, choices[i].traffic);
    }
}
END_TEST

START_TEST(other_types_than_the_activations_are_refused)
{
    static const char *const refused[][5] = {
        { "exp_avg_dtype", "fp16" },
        { "main_grads_dtype", "fp16" },
        { "exp_avg_dtype", "bf16", "dtype", "fp32" },
        { "main_params_dtype", "none", "dtype", "fp32" },
        { "main_grads_dtype", "bf16", "dtype", "fp32" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhScenario) scenario = NULL;

        ck_assert_ptr_null(setup_of("megatron-lm", refused[i], &scenario, &error));
        ck_assert_msg(strstr(error->message, "allowed in a step with") != NULL ||
                          strstr(error->message, "need no copy") != NULL,
                      "%s", error->message);
    }
}
END_TEST

LH_TEST_MAIN("step_optimizers", states_have_the_bytes_of_their_types, steps_are_proven,
             other_optimizers_are_found, programs_of_other_optimizers_are_found,
             blocks_are_stored_and_read, runs_equal_fp64, mistakes_are_beyond_the_gates,
             states_are_carried_on, options_precede_framework_files,
             other_types_than_the_activations_are_refused)
