/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skipping of repeated layers and micro-batches: a step simulated with skipping has the same
 * results as the step simulated op by op, to the picosecond.
 */
#include "compare/step_watch.h"
#include "exposed_spans.h"
#include "program/emit.h"
#include "random_pipeline.h"
#include "scenario/step/setup_step.h"
#include "share.h"
#include "step_results.h"

#define SHARING 6 /* every n-th case is also simulated with shared cores */
#define SPANS 3   /* every n-th case also measures exposed communication by its definition */

static uint32_t checks;

/* Exposed communication of all ranks measured on the way is that of the spans of all ops. */
static void
check_exposed(const char *members, const LhSimParams *of, const LhSimResult *whole)
{
    ExposedSpans spans = exposed_spans_new(whole->ranks_count);
    LhTime sum_ps[LH_EXPOSED_DIMENSIONS] = { 0 };
    LhSimParams params = *of;
    g_autoptr(LhSimResult) told = NULL;

    params.timeline = exposed_spans_note;
    params.timeline_data = &spans;
    told = lh_simulate(&params, NULL);
    for (uint32_t r = 0; r < spans.ranks; r++)
        exposed_spans_add(&spans, params.program, r, sum_ps);
    ck_assert_msg(memcmp(sum_ps, whole->exposed_ps, sizeof(sum_ps)) == 0, "%s: exposed", members);
    exposed_spans_clear(&spans);
}

/* Ops that are faster: of one rank, or one op. */
typedef struct {
    uint32_t rank, op; /* LH_OP_NONE: all of the rank */
} Faster;

static double
share_of(void *data, uint32_t rank, uint32_t id, const LhOp *op, const LhOpBuffer *buffer)
{
    const Faster *f = data;

    (void)op;
    (void)buffer;
    return rank == f->rank && (f->op == LH_OP_NONE || id == f->op) ? 0.7 : 1;
}

/* Returns the share of ops skipped, for this launch time and with @machine_ranks ranks sharing
 * half as many cores (0: no sharing); -1: the step is refused. */
static double
check(const char *members, LhTime launch_ps, uint64_t machine_ranks, const Faster *faster)
{
    LhScenario *scenario;
    g_autoptr(LhSetup) setup = setup_of(members, &scenario);
    g_autoptr(LhProgram) program = NULL;
    double share = -1;

    if (setup != NULL)
        program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    if (program != NULL) {
        LhSimParams params = params_of(setup, program, false);
        LhDevice device = *setup->device;
        LhHooks hooks = { 0 };
        g_autoptr(GError) error = NULL;
        g_autoptr(LhSimResult) skipping = NULL;
        g_autoptr(LhSimResult) whole = NULL;
        g_autoptr(LhSimResult) at_once = NULL;

        device.kernel_launch_ps = launch_ps;
        device.machine_ranks = machine_ranks;
        device.machine_cores = machine_ranks / 2;
        params.device = &device;
        lh_step_watch(program, &hooks);
        params.exposed_stride = 1;
        params.exposed_dimension = hooks.exposed_dimension;
        if (faster != NULL) {
            params.time_share = share_of;
            params.time_share_data = (void *)faster;
        }
        skipping = lh_simulate(&params, &error);
        params.unskipped = true;
        whole = lh_simulate(&params, &error);
        params.at_once = true;
        at_once = lh_simulate(&params, &error);
        ck_assert_msg(whole != NULL && skipping != NULL, "%s: %s", members,
                      error != NULL ? error->message : "");
        ck_assert_uint_eq(whole->skipped_ops, 0);
        check_same(members, skipping, whole);
        ck_assert_ptr_nonnull(at_once);
        check_same(members, whole, at_once);
        ck_assert(whole->compute_error == at_once->compute_error);
        ck_assert_double_eq(skipping->compute_judged, whole->compute_judged);
        ck_assert_double_eq(skipping->compute_error, whole->compute_error);
        ck_assert_uint_eq(whole->exposed_ranks, whole->ranks_count);
        ck_assert_msg(memcmp(skipping->exposed_ps, whole->exposed_ps, sizeof(whole->exposed_ps)) ==
                          0,
                      "%s: exposed communication", members);
        ck_assert_mem_eq(at_once->exposed_ps, whole->exposed_ps, sizeof(whole->exposed_ps));
        if (checks++ % SPANS == 0)
            check_exposed(members, &params, whole);
        ck_assert_mem_eq(&skipping->beyond, &whole->beyond, sizeof(whole->beyond));
        for (uint32_t r = 0; r < whole->ranks_count; r++)
            ck_assert_msg(memcmp(skipping->ranks[r].idle_ps, whole->ranks[r].idle_ps,
                                 sizeof(whole->ranks[r].idle_ps)) == 0,
                          "%s: idle times of rank %u", members, r);
        share = (double)skipping->skipped_ops / (double)skipping->ops;
    }
    lh_setup_free(g_steal_pointer(&setup));
    lh_scenario_free(scenario);
    return share;
}

static char *
random_members(uint64_t seed)
{
    static const char *const models[] = { "gpt3-125m", "gpt3-1.3b", "llama-3-70b-12l",
                                          "qwen3-8b",  "llama-7b",  NULL };
    static const char *const clusters[] = { "hgx-h100",  "dgx-a100-80g",  "hgx-b200",
                                            "dfa-2node", "fat-tree-a100", "azure-nc96-a100",
                                            NULL };
    static const char *const networks[] = { "fair", "fair", "fair", "alpha-beta", "fifo", NULL };
    static const char *const collectives[] = { "auto", "fluid", "closed-form", "ring",
                                               "nccl", "tree",  NULL };
    static const char *const shards[] = { "ddp", "zero1", "zero2", "fsdp", "fsdp", NULL };
    /* With the members behind a policy. */
    static const char *const checkpoints[] = {
        "none",
        "selective",
        "layer",
        "remat",
        "selective\", \"recompute_modules\": \"layernorm,core_attn",
        "layer\", \"recompute_method\": \"every\", \"recompute_num_layers\": \"2",
        "layer\", \"recompute_method\": \"uniform\", \"recompute_num_layers\": \"2",
        NULL
    };
    static const char *const schedules[] = { "ring",          "zigzag",  "te-allgather", "te-a2a",
                                             "dfa-balanced",  "ulysses", "te-p2p",       "usp",
                                             "attention2d-o", "lasp2",   "tokenring",    NULL };
    static const char *const frameworks[] = { "pytorch-fsdp", "megatron-lm", "deepspeed", NULL };
    static const uint32_t tensor[] = { 1, 1, 2, 4, 8 }, context[] = { 1, 2, 4, 4, 8 };
    static const uint32_t data[] = { 1, 1, 2, 4, 6 }, stages[] = { 1, 1, 1, 2, 3 };
    static const uint32_t micro_batches[] = { 1, 1, 2, 3, 9, 16 };
    const uint32_t t = number(tensor, G_N_ELEMENTS(tensor), seed, 1);
    const uint32_t c = number(context, G_N_ELEMENTS(context), seed, 2);
    const uint32_t d = number(data, G_N_ELEMENTS(data), seed, 3);
    const uint32_t p = number(stages, G_N_ELEMENTS(stages), seed, 4);
    const char *network = pick(networks, seed, 5), *cluster = pick(clusters, seed, 6);
    const uint32_t ranks = t * c * d * p;
    const bool slow = lh_rng_bits(seed, 14, 0) % 8 == 0;

    return g_strdup_printf(
        "\"model\": \"%s\", \"cluster\": \"%s:%u\", \"ranks\": %u, \"seq_length\": \"%s\", "
        "\"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
        "\"data_parallel_size\": %u, \"pipeline_model_parallel_size\": %u, "
        "\"num_micro_batches\": %u, \"network\": \"%s\", \"collectives\": \"%s\", "
        "\"shard\": \"%s\", \"checkpoint\": \"%s\", \"schedule\": [\"%s\"], \"framework\": "
        "\"%s\"%s",
        pick(models, seed, 7), cluster, (ranks + 1) / 2, ranks,
        lh_rng_bits(seed, 15, 0) % 2 == 0 ? "4K" : "32K", t, c, d, p,
        number(micro_batches, G_N_ELEMENTS(micro_batches), seed, 8), network,
        strcmp(network, "fair") == 0 ? pick(collectives, seed, 9) : "ring", pick(shards, seed, 10),
        pick(checkpoints, seed, 11), pick(schedules, seed, 12), pick(frameworks, seed, 13),
        slow ? ", \"straggler\": [{\"rank\": 0, \"factor\": 1.7}]" : "");
}

/* LONGHAUL_TEST_PIPELINES: the number of cases. */
START_TEST(pipelines_in_short_are_whole_pipelines)
{
    static const LhTime launches_ps[] = { 0, 4000000, 4000000, 30000000 };
    const char *wanted = g_getenv("LONGHAUL_TEST_PIPELINES");
    const uint64_t cases = wanted != NULL ? g_ascii_strtoull(wanted, NULL, 10) : test_share(120);
    uint64_t ran = 0, shorter = 0;

    for (uint64_t seed = 1; seed <= cases; seed++) {
        g_autofree char *members = random_pipeline(seed);
        const LhTime launch_ps = launches_ps[lh_rng_bits(seed, 16, 0) % G_N_ELEMENTS(launches_ps)];
        const double share = check(members, launch_ps, 0, NULL);

        ran += share >= 0;
        shorter += share > 0.3;
    }
    if (cases >= 40) {
        ck_assert_uint_gt(ran, cases / 2);
        ck_assert_uint_gt(shorter, ran / 3);
    }
}
END_TEST

/* Launch times: the host is ahead of its device, about equal, or behind. */
START_TEST(steps_in_short_are_whole_steps)
{
    static const LhTime launches_ps[] = { 0, 4000000, 30000000, 100000000 };
    const bool all = g_getenv("LONGHAUL_TEST_ALL") != NULL;
    const uint64_t cases = all ? 2000 : test_share(60);
    uint64_t ran = 0, shorter = 0, shared = 0;

    for (uint64_t seed = 1; seed <= cases; seed++) {
        g_autofree char *members = random_members(seed);
        const LhTime launch_ps = launches_ps[lh_rng_bits(seed, 16, 0) % G_N_ELEMENTS(launches_ps)];
        const double share = check(members, launch_ps, 0, NULL);

        ran += share >= 0;
        shorter += share > 0;
        if (seed % SHARING == 0 && share >= 0)
            shared += check(members, launch_ps, 4, NULL) > 0;
    }
    if (cases >= 40) {
        ck_assert_uint_gt(ran, cases / 2);
        ck_assert_uint_gt(shorter, cases / 4);
        ck_assert_uint_gt(shared, 0);
    }
}
END_TEST

/* A faster rank changes every period; a faster op only its own. */
START_TEST(faster_ops_are_not_skipped)
{
    const uint64_t cases = test_share(30);
    uint64_t shorter = 0;

    for (uint64_t seed = 1; seed <= cases; seed++) {
        g_autofree char *members = random_members(seed);
        Faster faster = { .op = LH_OP_NONE };

        faster.rank = (uint32_t)(lh_rng_bits(seed, 17, 0) % 4);
        shorter += check(members, 4000000, 0, &faster) > 0;
        for (uint32_t k = 0; k < 3; k++) {
            faster.rank = k;
            faster.op = 100 + (uint32_t)(lh_rng_bits(seed, 18, k) % 1500);
            shorter += check(members, 4000000, 0, &faster) > 0;
        }
    }
    if (cases >= 30)
        ck_assert_uint_gt(shorter, cases);
}
END_TEST

/* The optimizer's kernels are short: there a device waits for its host as soon as the host's
 * lead is used up. */
START_TEST(hosts_are_as_far_ahead)
{
    static const char members[] =
        "\"model\": \"llama-3-70b\", \"cluster\": \"hgx-h100\", \"ranks\": 8, \"seq_length\": "
        "\"2K\", "
        "\"tensor_model_parallel_size\": \"8\", \"schedule\": [\"ring\"], \"shard\": \"ddp\"";
    double left_out = 0;

    for (LhTime launch_ps = 20000000; launch_ps < 120000000; launch_ps += launch_ps / 20)
        left_out += check(members, launch_ps, 0, NULL);
    ck_assert_double_gt(left_out, 1);
}
END_TEST

/* Simulated collectives have hops between ranks that are represented by others. */
START_TEST(folded_steps_have_less_to_do)
{
    ck_assert_double_gt(check("\"model\": \"llama-7b\", \"cluster\": \"hgx-h100\", \"ranks\": 8, "
                              "\"seq_length\": \"4K\", "
                              "\"tensor_model_parallel_size\": \"8\", \"schedule\": [\"ring\"], "
                              "\"collectives\": \"fluid\"",
                              4000000, 0, NULL),
                        0);
}
END_TEST

/* ---- programs by hand ---- */

/* What differs between layers, from the middle on or throughout, in a program whose layers are
 * an alloc and a kernel. */
typedef enum {
    ODD_NOTHING,
    ODD_LABELS,  /* labels repeat after four layers */
    ODD_STEPS,   /* a step is two layers */
    ODD_OPERAND, /* an operand of another type with the same size */
    ODD_TIME,    /* the run exceeds the largest time */
    ODDS
} Odd;

#define LAYERS 401
#define MIDDLE 201

static Odd odd;

static uint32_t
steps_by_hand(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return odd == ODD_STEPS ? MIDDLE + (LAYERS - MIDDLE) / 2 : LAYERS;
}

static void
emit_layer(LhEmitter *e, uint32_t layer)
{
    const LhKernelArgs args = {
        .nq = layer % 2 == 0 ? 4096 : 8192, .batch = 1, .heads = 8, .groups = 8, .head_dim = 128
    };
    const uint16_t operand = odd == ODD_OPERAND && layer >= MIDDLE ? 2 : 1;

    e->layer = (uint16_t)(odd == ODD_LABELS ? layer % 4 : layer);
    e->micro_batch = (uint16_t)(odd == ODD_LABELS ? layer / 4 : 0);
    lh_emit_alloc_region(e, (LhRegion){ .slot = 0, .part = layer, .count = 1 });
    lh_emit_compute(e, 0, LH_KERNEL_ID_copy, &args);
    lh_emit_operand(e, operand, 0, 1);
    lh_emit_operand(e, operand, 0, 1);
}

static void
emit_by_hand(LhEmitter *e, uint32_t step)
{
    if (odd != ODD_STEPS || step < MIDDLE) {
        emit_layer(e, step);
        return;
    }
    emit_layer(e, MIDDLE + 2 * (step - MIDDLE));
    emit_layer(e, MIDDLE + 2 * (step - MIDDLE) + 1);
}

static const LhGenerator by_hand = { .steps = steps_by_hand,
                                     .emit = emit_by_hand,
                                     .of_all_groups = true };

static void
add_slot(LhProgram *program, const char *name, LhDtype dtype, uint32_t parts)
{
    lh_program_add_slot(program, (LhSlotParams){ .name = name,
                                                 .kind = LH_TENSOR_HIDDEN,
                                                 .role = LH_SLOT_TEMP,
                                                 .dtype = dtype,
                                                 .category = LH_CATEGORY_SAVED,
                                                 .parts = parts,
                                                 .part_bytes = 1 << 20 });
}

static LhProgram *
program_by_hand(const LhProgramParams *params)
{
    LhProgram *program = lh_program_create("by_hand", &by_hand, params, LH_PLACE_CONTIGUOUS);

    add_slot(program, "kept", LH_DTYPE_BF16, LAYERS);
    add_slot(program, "wide", LH_DTYPE_FP32, 1);
    add_slot(program, "narrow", LH_DTYPE_BF16, 1);
    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    return program;
}

/* Any difference between layers ends the skipping, or has the results of the simulation op by
 * op. */
static void
check_odd(const LhSetup *setup, const LhProgramParams *of)
{
    LhStraggler slow = { .rank = 0, .slowdown = 7e9 };
    g_autoptr(GArray) stragglers = g_array_new(FALSE, FALSE, sizeof(LhStraggler));
    g_autoptr(LhProgram) program = program_by_hand(of);
    LhSimParams params = params_of(setup, program, false);
    LhDevice device = *setup->device;
    g_autoptr(LhSimResult) skipping = NULL;
    g_autoptr(LhSimResult) whole = NULL;
    g_autoptr(GError) in_short = NULL;
    g_autoptr(GError) error = NULL;

    device.kernel_launch_ps = 0;
    params.device = &device;
    params.memory_limit_bytes = UINT64_C(300) << 20;
    g_array_append_val(stragglers, slow);
    if (odd == ODD_TIME)
        params.stragglers = stragglers;
    skipping = lh_simulate(&params, &in_short);
    params.unskipped = true;
    whole = lh_simulate(&params, &error);
    if (odd == ODD_TIME) {
        ck_assert_ptr_null(skipping);
        ck_assert_ptr_null(whole);
        ck_assert_str_eq(in_short->message, error->message);
    } else {
        ck_assert_uint_gt(skipping->skipped_ops, odd == ODD_LABELS ? 0 : LAYERS / 2);
        ck_assert_ptr_nonnull(whole->out_of_memory);
        check_same("by hand", skipping, whole);
    }
}

START_TEST(odd_layers_are_seen)
{
    static const char members[] =
        "\"model\": \"gpt3-125m\", \"cluster\": \"hgx-h100\", \"ranks\": 1, "
        "\"seq_length\": \"4K\", \"schedule\": [\"ring\"]";
    LhScenario *scenario;
    g_autoptr(LhSetup) setup = setup_of(members, &scenario);
    g_autoptr(LhProgram) step = NULL;

    step = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    for (int i = 0; i < ODDS; i++) {
        odd = (Odd)i;
        check_odd(setup, &step->params);
    }
    lh_program_free(g_steal_pointer(&step));
    lh_setup_free(g_steal_pointer(&setup));
    lh_scenario_free(scenario);
}
END_TEST

LH_TEST_MAIN("repeat", pipelines_in_short_are_whole_pipelines, steps_in_short_are_whole_steps,
             faster_ops_are_not_skipped, hosts_are_as_far_ahead, folded_steps_have_less_to_do,
             odd_layers_are_seen)
