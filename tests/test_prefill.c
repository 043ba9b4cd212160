/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass of a model alone: proven and executed for every parallel size, sharding,
 * schedule and kind of model; its figures worked out by hand; faults beyond the gates; and what is
 * refused.
 */
#include "base/error.h"
#include "execute/prefill_compare.h"
#include "execute/step_numerics.h"
#include "recording.h"
#include "run_tests.h"
#include "scenario/setup.h"
#include "share.h"
#include "step/formulas.h"
#include "step/layer_info.h"
#include "step/memory/peak_memory.h"
#include "steps.h"
#include "verify/verify.h"

#include <string.h>

#define SEED 7
#define DEADLINE_US 20000000

/* ---- programs ---- */

static char *
text_of(const TinyStep *t)
{
    return g_strdup_printf("%s tp %u cp %u dp %u pp %u chunks %u layers %u m %u batch %u %s %s, "
                           "groups %u, window %u, %u experts",
                           t->schedule, t->tensor, t->context, t->data, t->stages, t->chunks,
                           t->layers, t->micro_batches, t->batch, lh_dtype_names[t->dtype],
                           lh_shard_names[t->shard], t->groups, t->window, t->experts);
}

/* Framework behaviours, selected by the bits of a number. */
static LhStepBehaviour
behaviour_of(uint32_t bits)
{
    return (LhStepBehaviour){
        .reshard = bits & 1,
        .halves = bits & 2,
        .prefetch = bits >> 2 & 1,
        .unit_is_model = bits & 8,
        .overlap_tensor = bits & 16,
        .gather_again = bits & 32,
        .unfused_bytes = bits & 64 ? 6 : 0,
        .other_bytes = bits & 128 ? 4096 : 0,
        /* Of a training step, and without effect here. */
        .clip = bits & 256 ? 1 : 0,
        .copy_bytes = bits & 512 ? 4 : 0,
        .step_bytes = bits & 1024 ? 4 : 0,
        .logits_fp32 = bits & 2048,
        .gradients_stay = bits & 4096,
    };
}
#define BEHAVIOURS 8192U

static const TinyStep models[] = {
    { .schedule = "zigzag" },
    { .schedule = "ring", .groups = 2, .batch = 2 },
    { .schedule = "ulysses", .groups = 4, .tied = true, .vocabulary = 61 },
    { .schedule = "striped", .groups = 1, .batch = 3, .layer_norm = true, .gelu = true },
    { .schedule = "zigzag", .window = 5, .layers = 4, .vocabulary = 61 },
    { .schedule = "usp", .gate = true, .tied = true },
    { .schedule = "te-allgather", .experts = 4, .shared = 1, .dense = 1, .layers = 3 },
};

static const struct {
    uint32_t tensor, context, data, stages, chunks;
} sizes[] = {
    { 1, 1, 1, 1, 1 }, { 2, 1, 1, 1, 1 }, { 1, 2, 1, 1, 1 }, { 1, 1, 2, 1, 1 }, { 2, 2, 2, 1, 1 },
    { 4, 2, 1, 1, 1 }, { 1, 4, 1, 1, 1 }, { 1, 1, 1, 2, 1 }, { 2, 2, 1, 2, 1 }, { 1, 2, 1, 4, 1 },
    { 1, 1, 1, 2, 2 }, { 2, 1, 2, 2, 2 }, { 1, 4, 1, 2, 1 }, { 8, 1, 1, 1, 1 },
};
#define CASES (G_N_ELEMENTS(models) * G_N_ELEMENTS(sizes))

/* Case @number: every model with every size; all else by turns. */
static TinyStep
case_of(uint32_t number)
{
    const uint32_t size = number % G_N_ELEMENTS(sizes), model = number / G_N_ELEMENTS(sizes);
    TinyStep t = models[model];
    const uint32_t parts = sizes[size].stages * sizes[size].chunks;

    t.forward_only = true;
    t.tensor = sizes[size].tensor;
    t.context = sizes[size].context;
    t.data = sizes[size].data;
    t.stages = sizes[size].stages;
    t.chunks = sizes[size].chunks;
    t.layers = parts > 1 ? parts * (1 + number % 2) : t.layers;
    t.micro_batches = t.chunks > 1 ? t.stages * (1 + number % 2) : 1 + (number + model) % 3;
    t.shard = (number + model) % 2 == 0 ? LH_SHARD_DDP : LH_SHARD_FSDP;
    t.dtype = (LhDtype)(number % 3);
    t.tile_rows = number % 4 == 1 ? 6 : 0;
    t.behaviour = behaviour_of(number * 2654435761U % BEHAVIOURS);
    return t;
}

static LhProgram *
program_of(const TinyStep *tiny)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = text_of(tiny);
    LhProgram *program = tiny_step(tiny, &error);

    ck_assert_msg(program != NULL, "%s: %s", text, error != NULL ? error->message : "");
    return program;
}

/* ---- proofs ---- */

/* Also checks that the peak is known without the ops, and that nothing of training is there. */
static void
prove(const TinyStep *tiny)
{
    g_autoptr(LhProgram) program = program_of(tiny);
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    g_autofree char *text = text_of(tiny);
    uint64_t by_category[LH_CATEGORIES], most = 0;

    ck_assert_msg(
        verdict->findings_total == 0, "%s: %s", text,
        verdict->findings_total == 0 ? "" : g_array_index(verdict->findings, LhFinding, 0).message);
    ck_assert_msg(verdict->one_queue, "%s: %s", text, verdict->queue_cycle);
    for (uint32_t rank = 0; rank < verdict->ranks; rank++)
        most = MAX(most, verdict->peak_bytes[rank]);
    ck_assert_uint_eq(lh_step_peak(program, by_category), most);
    ck_assert_uint_eq(by_category[LH_CATEGORY_GRADIENTS] + by_category[LH_CATEGORY_OPTIMIZER] +
                          by_category[LH_CATEGORY_SAVED],
                      0);
    ck_assert_uint_gt(by_category[LH_CATEGORY_CACHE], 0);
}

START_TEST(prefills_are_proven)
{
    for (uint32_t i = 0; i < CASES; i++) {
        const TinyStep tiny = case_of(i);

        if (test_takes(i))
            prove(&tiny);
    }
}
END_TEST

START_TEST(schedules_are_proven)
{
    uint32_t proven = 0;

    for (uint32_t i = 0; lh_schedules[i] != NULL; i++) {
        TinyStep tiny = { .schedule = lh_schedules[i]->name,
                          .forward_only = true,
                          .tensor = 2,
                          .context = 4,
                          .micro_batches = 2 };

        if (lh_schedules[i]->placement == LH_PLACE_HEADS ||
            !lh_schedule_takes(lh_schedules[i], false))
            continue;
        prove(&tiny);
        proven++;
    }
    ck_assert_uint_gt(proven, 12);
}
END_TEST

/* ---- damage ---- */

/* The last call of @kernel on @rank. */
static LhOp *
last_call(const Recording *r, uint32_t rank, LhKernelId kernel)
{
    for (uint32_t id = recording_count(r, rank); id-- > 0;) {
        LhOp *op = recording_op(r, rank, id);

        if (op->kind == LH_OP_COMPUTE && op->module == 0 && op->compute.kernel == kernel)
            return op;
    }
    ck_abort_msg("no %s", lh_kernels[kernel]->name);
    return NULL;
}

typedef enum { LOGITS_IN_PLACE_OF_OTHERS, ROWS_OF_ANOTHER_RANK, ROWS_OF_OTHER_SIZES, WAYS } Way;

static void
damage(const Recording *r, Way way)
{
    LhOp *head = last_call(r, 1, LH_KERNEL_ID_product_dgrad);
    LhKernelArgs *rows = &last_call(r, 1, LH_KERNEL_ID_last_rows)->compute.args;

    if (way == LOGITS_IN_PLACE_OF_OTHERS)
        head->compute.regions[2].part--;
    else if (way == ROWS_OF_ANOTHER_RANK)
        head->compute.regions[0].part--;
    else
        rows->rows.rows /= 2, rows->rows.width *= 2;
}

/* What no later call reads, so that the values at the end alone tell. test_verify_step_damage.c
 * damages everything. */
START_TEST(what_is_left_is_proven)
{
    static const char *const messages[WAYS] = {
        [LOGITS_IN_PLACE_OF_OTHERS] = "ends with logits_last of layer 2, micro-batch 1",
        [ROWS_OF_ANOTHER_RANK] = "rows of tensor-parallel rank 0",
        [ROWS_OF_OTHER_SIZES] = "is called with rows = 1; needed: 2",
    };
    const TinyStep tiny = {
        .schedule = "zigzag", .forward_only = true, .tensor = 2, .batch = 2, .micro_batches = 2
    };
    g_autoptr(LhProgram) program = program_of(&tiny);
    Recording *whole = recording_new(program), *r = recording_new(program);

    for (unsigned way = 0; way < WAYS; way++) {
        g_autoptr(LhVerdict) verdict = NULL;

        recording_restore(r, whole);
        damage(r, (Way)way);
        verdict = lh_verify(&r->program);
        ck_assert_uint_gt(verdict->findings_total, 0);
        ck_assert_msg(
            strstr(g_array_index(verdict->findings, LhFinding, 0).message, messages[way]) != NULL,
            "%s", g_array_index(verdict->findings, LhFinding, 0).message);
    }
    recording_free(whole);
    recording_free(r);
}
END_TEST

/* ---- runs ---- */

static LhRunResult *
run(const LhProgram *program, LhStepLoad *load, const LhRunHooks *hooks)
{
    g_autoptr(GError) error = NULL;
    const LhRunParams params = {
        .program = program,
        .backend = &lh_backend_cpu,
        .deadline_us = DEADLINE_US,
        .hooks = hooks,
        .load = lh_step_load,
        .load_data = load,
    };
    LhRunResult *result = lh_execute(&params, &error);

    ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
    return result;
}

static void
compare(const LhProgram *program, const LhRunHooks *hooks, LhErrorReport *report)
{
    g_autoptr(LhStepNumerics) numerics = lh_step_numerics_new(program, SEED, false);
    LhStepLoad load = { .numerics = numerics };
    g_autoptr(LhRunResult) result = run(program, &load, hooks);

    lh_prefill_compare(numerics, result, 1, report);
}

START_TEST(prefills_are_executed)
{
    for (uint32_t i = 0; i < CASES; i++) {
        const TinyStep tiny = case_of(i);
        g_auto(LhErrorReport) report = { 0 };
        g_autofree char *text = text_of(&tiny);
        g_autoptr(LhProgram) program = NULL;

        if (!test_takes(i))
            continue;
        program = program_of(&tiny);
        compare(program, NULL, &report);
        for (uint32_t k = 0; k < report.rows_count; k++) {
            const LhErrorRow *row = &report.rows[k];

            ck_assert_msg(row->ok, "%s: %s: error %g, in units %g on the mean and %g at worst",
                          text, row->name, row->rel_l2, row->mean, row->row);
        }
        ck_assert(report.ok && report.rows_count == 3);
    }
}
END_TEST

/* ---- faults ---- */

/* A fault on rank 1, or the first: a kernel, or what a collective receives, in one layer and
 * micro-batch. */
typedef struct {
    const char *name;
    TinyStep tiny;
    LhKernelId kernel;
    int collective; /* LhCollectiveKind; -1: a kernel */
    bool on_first;
    uint16_t layer, micro_batch;
    enum { DROP, WRONG_PLACE, FIRST_ROWS } what;
} Fault;

typedef struct {
    const Fault *fault;
    gint hits; /* atomic */
} Injected;

static bool
is_hit(const Injected *in, uint32_t rank, const LhOp *op)
{
    return rank == (in->fault->on_first ? 0 : 1) && op->module == 0 &&
           op->layer == in->fault->layer && op->micro_batch == in->fault->micro_batch;
}

static enum lh_status
call_wrong(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    Injected *in = data;
    const LhKernelId kernel = op->compute.kernel;
    LhKernelArgs args = *call->args;
    LhCall wrong = *call;

    wrong.args = &args;
    if (in->fault->collective >= 0 || kernel != in->fault->kernel || !is_hit(in, rank, op))
        return at->device->call(at->state, kernel, call, at->stream);
    g_atomic_int_inc(&in->hits);
    if (in->fault->what == DROP)
        return LH_STATUS_OK;
    if (in->fault->what == WRONG_PLACE)
        args.to_heads.start++;
    else
        args.rows.count--; /* sequences seem shorter */
    return at->device->call(at->state, kernel, &wrong, at->stream);
}

static bool
land_nothing(void *data, uint32_t rank, const LhOp *op, const LhMessage *message)
{
    Injected *in = data;

    if (in->fault->collective < 0 || op->kind != LH_OP_COLLECTIVE ||
        (int)op->collective.kind != in->fault->collective || !is_hit(in, rank, op))
        return true;
    g_atomic_int_inc(&in->hits);
    for (uint32_t i = 0; i < message->pieces_count; i++)
        memset(message->pieces[i].data, 0, message->pieces[i].bytes);
    return false;
}

#define KERNEL(id) .kernel = LH_KERNEL_ID_##id, .collective = -1
#define PREFILL(t, c) .schedule = "zigzag", .forward_only = true, .tensor = t, .context = c

static const Fault faults[] = {
    { "keys of a layer at wrong positions",
      { PREFILL(1, 2) },
      KERNEL(rotary_kv),
      .layer = 1,
      .what = WRONG_PLACE },
    { "keys and values of a layer and micro-batch not written",
      { PREFILL(1, 2), .micro_batches = 2 },
      KERNEL(rotary_kv),
      .layer = 1,
      .micro_batch = 1,
      .what = DROP },
    { "queries at wrong positions", { PREFILL(1, 2) }, KERNEL(rotary_q), .what = WRONG_PLACE },
    { "no last rows", { PREFILL(2, 1) }, KERNEL(last_rows), .layer = 2, .what = DROP },
    { "another row than the last",
      { PREFILL(1, 2), .batch = 2 },
      KERNEL(last_rows),
      .layer = 2,
      .what = FIRST_ROWS },
    { "no logits", { PREFILL(1, 2) }, KERNEL(product_dgrad), .layer = 2, .what = DROP },
    { "last rows of the last rank not gathered",
      { PREFILL(2, 1) },
      .collective = LH_COLL_ALL_GATHER,
      .on_first = true,
      .layer = 2 },
    { "weights not gathered",
      { PREFILL(1, 2), .shard = LH_SHARD_FSDP },
      .collective = LH_COLL_ALL_GATHER,
      .layer = 1 },
};

START_TEST(faults_are_beyond_the_gates)
{
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(faults); i++) {
        Fault here = faults[i / 2];
        Injected in = { .fault = &here };
        const LhRunHooks hooks = { .data = &in, .call = call_wrong, .land = land_nothing };
        g_auto(LhErrorReport) report = { 0 };
        g_autoptr(LhProgram) program = NULL;

        if (!test_takes_of(i, 7))
            continue;
        here.tiny.dtype = i % 2 == 0 ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
        program = program_of(&here.tiny);
        compare(program, &hooks, &report);
        ck_assert_msg(in.hits > 0, "%s: has no target", here.name);
        ck_assert_msg(!report.ok, "%s, %s: within the gates", here.name,
                      lh_dtype_names[here.tiny.dtype]);
    }
}
END_TEST

/* Exchanges parts @a and @b of a slot of rank 0 after a run. */
static void
exchange_parts(const LhProgram *program, LhRunResult *result, uint32_t slot, uint32_t a, uint32_t b)
{
    const uint64_t bytes = program->slots[slot].part_bytes;
    unsigned char *x = (unsigned char *)lh_run_output(result, program, 0, (uint16_t)slot, a);
    unsigned char *y = (unsigned char *)lh_run_output(result, program, 0, (uint16_t)slot, b);
    g_autofree unsigned char *kept = g_memdup2(x, bytes);

    memcpy(x, y, bytes);
    memcpy(y, kept, bytes);
}

/* Any two parts of what a rank leaves, of other layers, micro-batches or segments, cannot take
 * each other's place. */
START_TEST(parts_are_not_alike)
{
    const TinyStep tiny = { PREFILL(2, 2), .micro_batches = 2, .dtype = LH_DTYPE_BF16 };
    g_autoptr(LhProgram) program = program_of(&tiny);
    g_autoptr(LhStepNumerics) numerics = lh_step_numerics_new(program, SEED, false);
    LhStepLoad load = { .numerics = numerics };
    g_autoptr(LhRunResult) result = run(program, &load, NULL);
    uint32_t tried = 0;

    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        const LhSlot *s = &program->slots[slot];

        for (uint32_t part = 1; s->role == LH_SLOT_OUTPUT && part < s->parts; part++) {
            g_auto(LhErrorReport) report = { 0 };

            exchange_parts(program, result, slot, part - 1, part);
            lh_prefill_compare(numerics, result, 1, &report);
            ck_assert_msg(!report.ok, "parts %u and %u of %s", part - 1, part, s->name);
            exchange_parts(program, result, slot, part - 1, part);
            tried++;
        }
    }
    /* Two layers and micro-batches of two segments; logits of two micro-batches. */
    ck_assert_uint_eq(tried, 2 * 2 * 2 - 1 + 1);
}
END_TEST

/* ---- figures ---- */

/*
 * Three layers of width 64 with 8 heads of 8, 2 key-value heads and an MLP of 192, on 2 x 2 ranks
 * with 2 sequences of 32 tokens in each of 3 micro-batches. Of a rank and micro-batch: 32 rows; a
 * layer's matrices on a tensor-parallel rank are 64 x 32 for q and for the output, 64 x 16 for k
 * and v, 64 x 192 and 96 x 64 for the MLP; the head is 64 x 32, for 2 rows.
 */
START_TEST(figures_are_those_by_hand)
{
    const TinyStep tiny = {
        PREFILL(2, 2), .layers = 3,        .groups = 2,
        .batch = 2,    .micro_batches = 3, .shard = LH_SHARD_DDP,
    };
    const uint64_t layer = 64 * 32 + 64 * 16 + 32 * 64 + 64 * 192 + 96 * 64;
    const uint64_t whole = 2 * (64 * 64) + 64 * 32 + 3 * 64 * 192;
    g_autoptr(LhProgram) program = program_of(&tiny);
    const LhStepFlops flops = lh_step_flops(program);
    const LhStepStateBytes bytes = lh_step_state_bytes(program, 3);
    uint64_t sent = 0;

    ck_assert_uint_eq(lh_step_dense_flops(program, 3), 2 * 3 * (3 * 32 * layer + 2 * 64 * 32));
    /* Of 6 sequences: 32 tokens, 32 x 33 / 2 pairs of 8 heads of 8; one row of logits. */
    ck_assert(flops.model == 2 * 6 * (3 * 32 * whole + 64 * 64) + 6 * 3 * 4 * 64 * (32 * 33 / 2));
    /* k and v of one head of 8 in bf16. */
    ck_assert_uint_eq(bytes.cache, 3 * 3 * 32 * 2 * 8 * 2);
    ck_assert_uint_eq(bytes.gradients + bytes.optimizer, 0);
    /* Norms of 64 are whole on every rank: 2 a layer and the last one. Others are rounded up. */
    ck_assert_uint_eq(bytes.weights, 2 * (3 * (layer + 2 * 64) + 2 * 64 * 32 + 64));
    /* Four moves of 16 rows a layer, the embedding's, and 2 last rows. */
    ck_assert(lh_step_bytes_sent(program, LH_DIMENSION_TENSOR, 3, &sent));
    ck_assert_uint_eq(sent, 3 * ((4 * 3 + 1) * 16 * 64 * 2 + 2 * 64 * 2));
    ck_assert(lh_step_bytes_sent(program, LH_DIMENSION_DATA, 3, &sent));
    ck_assert_uint_eq(sent, 0);
}
END_TEST

/* ---- refusals ---- */

static void
check_refusal(const char *members, const char *message)
{
    g_autofree char *text = g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"step\": true, "
                                            "\"pass\": \"fwd\", \"ranks\": 4%s}",
                                            members);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) scenario = lh_scenario_parse("s.json", text, strlen(text), &error);
    g_autoptr(LhSetup) setup = scenario != NULL ? lh_setup_new(scenario, &error) : NULL;

    ck_assert(setup == NULL);
    ck_assert_msg(strstr(error->message, message) != NULL, "%s", error->message);
}

START_TEST(what_has_no_meaning_is_refused)
{
    const TinyStep linear = { .schedule = "lasp", .linear = true, .forward_only = true };
    const TinyStep zero = { PREFILL(1, 2), .shard = LH_SHARD_ZERO1 };
    g_autoptr(GError) error = NULL;

    check_refusal(", \"checkpoint\": \"none\"", "no backward pass to recompute");
    check_refusal(", \"recompute_modules\": \"mlp\"", "no backward pass to recompute");
    check_refusal(", \"loss\": \"fused\"", "has no loss");
    check_refusal(", \"exp_avg_dtype\": \"bf16\"", "has no optimizer");
    check_refusal(", \"main_grads_dtype\": \"fp32\"", "has no gradients");
    check_refusal(", \"lora_rank\": 2", "has no weights to train");
    check_refusal(", \"cpu_offloading_num_layers\": \"all\"", "no backward pass to keep");
    check_refusal(", \"seq_length\": 4096, \"document_distribution\": \"exponential:1K\"",
                  "has no packed documents");
    check_refusal(", \"shard\": \"zero1\"", "allowed: ddp, fsdp");
    check_refusal(", \"shard\": \"zero2\"", "allowed: ddp, fsdp");
    check_refusal(", \"pipeline_model_parallel_size\": 2, \"pipeline_schedule\": \"gpipe\"",
                  "in which alone the orders differ");
    ck_assert_ptr_null(tiny_step(&linear, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "does not support linear attention"));
    g_clear_error(&error);
    ck_assert_ptr_null(tiny_step(&zero, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "ddp or fsdp"));
}
END_TEST

LH_TEST_MAIN("prefill", prefills_are_proven, schedules_are_proven, what_is_left_is_proven,
             prefills_are_executed, faults_are_beyond_the_gates, parts_are_not_alike,
             figures_are_those_by_hand, what_has_no_meaning_is_refused)
