/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executed training steps: loss, gradients and updated weights of every policy, sharding, schedule
 * and kind of model against one rank in fp64. Injected faults exceed the gates; a tiny model
 * learns, on one rank as on eight.
 */
#include "base/rng.h"
#include "execute/execute.h"
#include "execute/step_compare.h"
#include "execute/step_numerics.h"
#include "kernels/sizes.h"
#include "run_tests.h"
#include "share.h"
#include "step/layer_info.h"
#include "step/state_contents.h"
#include "steps.h"
#include "verify/verify.h"
#include "verifying.h"

#include <math.h>
#include <string.h>

#define SEED 7
#define DEADLINE_US 20000000

/* ---- runs ---- */

static char *
text_of(const TinyStep *t)
{
    return g_strdup_printf(
        "%s tp %u cp %u dp %u pp %u chunks %u gpipe %d layers %u m %u batch %u "
        "%s %s %s%s%s%s%s%s, groups %u, window %u, "
        "vocabulary %u, %u of %u experts, %u shared, %u dense, loss %s of %u, "
        "tiles of %u, modules %x, layers %u by method %d, documents %u, rank %u of %u, optimizer "
        "offloaded %g%s%s",
        t->schedule, t->tensor, t->context, t->data, t->stages, t->chunks,
        t->order == LH_PIPELINE_GPIPE, t->layers, t->micro_batches, t->batch,
        lh_dtype_names[t->dtype], lh_shard_names[t->shard], lh_checkpoint_names[t->checkpoint],
        t->linear ? " linear" : "", t->gelu ? " gelu" : "", t->layer_norm ? " layer norm" : "",
        t->tied ? " tied" : "", t->gate ? " gate" : "", t->groups, t->window,
        (unsigned)t->vocabulary, t->choices, t->experts, t->shared, t->dense,
        lh_loss_names[t->loss], (unsigned)t->chunk_rows, (unsigned)t->tile_rows,
        t->recompute.modules, t->recompute.layers, t->recompute.method, t->documents, t->rank,
        t->targets, t->optimizer_offload, t->overlap_copies ? " with overlap" : "",
        t->offload_param ? ", parameters" : "");
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

/* Runs @program once. Caller frees. */
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

/* Runs the first step of @tiny with @hooks and compares it. */
static void
compare(const TinyStep *tiny, const LhRunHooks *hooks, LhErrorReport *report)
{
    g_autoptr(LhProgram) program = program_of(tiny);
    g_autoptr(LhStepNumerics) numerics = lh_step_numerics_new(program, SEED, false);
    LhStepLoad load = { .numerics = numerics };
    g_autoptr(LhRunResult) result = run(program, &load, hooks);

    lh_step_numerics_advance(numerics, 1);
    lh_step_compare(numerics, result, report);
}

static void
check(const TinyStep *tiny)
{
    g_auto(LhErrorReport) report = { 0 };
    g_autofree char *text = text_of(tiny);

    compare(tiny, NULL, &report);
    for (uint32_t i = 0; i < report.rows_count; i++) {
        const LhErrorRow *row = &report.rows[i];

        ck_assert_msg(row->ok, "%s: %s: error %g, in units %g on the mean and %g at worst", text,
                      row->name, row->rel_l2, row->mean, row->row);
    }
    ck_assert(report.ok && report.rows_count >= (tiny->rank > 0 ? 14 : 20));
}

/* Every framework behaviour, selected by the bits of a number. */
static LhStepBehaviour
behaviour_of(unsigned bits)
{
    return (LhStepBehaviour){
        .overlap_reduce = bits & 1,
        .overlap_tensor = bits & 2,
        .reshard = bits & 4,
        .prefetch = bits >> 3 & 1,
        .reduce_each = bits & 16,
        .halves = bits & 32,
        .gradients_stay = bits & 64,
        .logits_fp32 = bits & 128,
        .gradients_fp32 = bits & 256,
        .unit_is_model = bits & 512,
        .clip = bits & 1024 ? 0.5 : 0,
    };
}
#define BEHAVIOURS 2048U

/* ---- correct runs ---- */

/* Numbers of tensor-, context- and data-parallel ranks. */
typedef uint32_t Sizes[3];

static void
set_sizes(TinyStep *tiny, const Sizes sizes)
{
    tiny->tensor = sizes[0];
    tiny->context = sizes[1];
    tiny->data = sizes[2];
}

/* Every policy and sharding on 1, 2, 4 and 8 ranks. */
START_TEST(policies_and_shardings)
{
    static const Sizes sizes[] = {
        { 1, 1, 1 }, { 2, 1, 1 }, { 1, 2, 1 }, { 1, 1, 2 }, { 2, 2, 1 },
        { 2, 1, 2 }, { 1, 2, 2 }, { 2, 2, 2 }, { 4, 1, 2 }, { 1, 4, 2 }
    };
    const unsigned ways = LH_SHARDS * LH_CHECKPOINTS * 2;

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes) * ways; i++) {
        const unsigned size = i / ways, number = i % ways, checkpoint = number / 2 % LH_CHECKPOINTS;
        TinyStep tiny = {
            .schedule = "zigzag",
            .micro_batches = (number + checkpoint) % 2 == 0 ? 1 : 3,
            .shard = (LhShard)(number / 2 / LH_CHECKPOINTS),
            .checkpoint = (LhCheckpoint)checkpoint,
            .dtype = number % 2 == 1 ? LH_DTYPE_FP32 : LH_DTYPE_BF16,
            .behaviour = behaviour_of(size * 173 + number * 37),
        };

        set_sizes(&tiny, sizes[size]);
        if (test_takes(number + size))
            check(&tiny);
    }
}
END_TEST

/* Framework behaviours change no result; here in random combinations. */
START_TEST(behaviours)
{
    for (unsigned i = 0; i < test_share(48); i++) {
        const uint64_t x = lh_rng_bits(SEED, 1, i);

        check(&(TinyStep){
            .schedule = "zigzag",
            .tensor = 1 + (x & 1),
            .context = 1 + (x >> 1 & 1),
            .data = 1 + (uint32_t)(x >> 2 & 3) % 3,
            .layers = 2 + (x >> 4 & 1),
            .micro_batches = 1 + (uint32_t)(x >> 5 & 3) % 3,
            .shard = (LhShard)(x >> 8 & 3),
            .checkpoint = (LhCheckpoint)(x >> 10 & 3),
            .dtype = (LhDtype)((x >> 40) % 3),
            .tied = x >> 13 & 1,
            .groups = x >> 14 & 1 ? 2 : 0,
            .behaviour = behaviour_of((unsigned)(x >> 16) % BEHAVIOURS),
        });
    }
}
END_TEST

/* Attention with every schedule that a step supports. */
START_TEST(schedules)
{
    for (unsigned i = 0; lh_schedules[i] != NULL; i++) {
        const bool linear = !lh_schedule_takes(lh_schedules[i], false);

        if (lh_schedules[i]->placement == LH_PLACE_HEADS)
            continue;
        for (unsigned checkpoint = 0; checkpoint < LH_CHECKPOINTS; checkpoint++) {
            if (test_takes(checkpoint + i))
                check(&(TinyStep){
                    .schedule = lh_schedules[i]->name,
                    .context = 4,
                    .tensor = 2,
                    .linear = linear,
                    .gate = linear && checkpoint % 2 == 0,
                    .checkpoint = (LhCheckpoint)checkpoint,
                    .dtype = checkpoint / 2 == 0 ? LH_DTYPE_FP32 : LH_DTYPE_BF16,
                });
        }
    }
}
END_TEST

/* Models with each of these sizes and every sharding. */
typedef struct {
    const TinyStep *models;
    const Sizes *sizes;
    unsigned models_count, sizes_count;
    unsigned of_model, of_size, of_shard; /* added to the number of the behaviour */
} Family;

static void
check_family(const Family *f)
{
    for (unsigned m = 0; m < f->models_count; m++) {
        for (unsigned i = 0; i < f->sizes_count * LH_SHARDS; i++) {
            const unsigned size = i / LH_SHARDS, shard = i % LH_SHARDS;
            TinyStep tiny = f->models[m];

            set_sizes(&tiny, f->sizes[size]);
            tiny.shard = (LhShard)shard;
            tiny.checkpoint = (LhCheckpoint)((size + shard) % LH_CHECKPOINTS);
            tiny.micro_batches = 1 + size % 2;
            tiny.behaviour =
                behaviour_of(m * f->of_model + size * f->of_size + shard * f->of_shard);
            tiny.dtype = (size + shard) % 2 == 0 ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
            if (test_takes(i + m))
                check(&tiny);
        }
    }
}

/* Different models, on one rank and with every kind of parallelism. */
START_TEST(models)
{
    static const TinyStep different[] = {
        { .schedule = "zigzag", .tied = true },
        { .schedule = "zigzag", .groups = 2 },
        { .schedule = "ring", .groups = 1 },
        { .schedule = "ring", .window = 5, .layers = 4 },
        { .schedule = "zigzag", .vocabulary = 61 },
        { .schedule = "zigzag", .vocabulary = 61, .tied = true, .groups = 1 },
        { .schedule = "dfa-balanced", .gelu = true, .layer_norm = true },
        { .schedule = "ulysses", .batch = 2, .tokens = 24 },
        { .schedule = "striped", .batch = 3, .layers = 3 },
        { .schedule = "lasp2", .linear = true, .gate = true },
        { .schedule = "lasp", .linear = true, .groups = 2 },
    };
    static const Sizes sizes[] = {
        { 1, 1, 1 }, { 4, 2, 1 }, { 2, 2, 2 }, { 4, 1, 2 }, { 1, 2, 3 }
    };

    check_family(&(Family){ different, sizes, G_N_ELEMENTS(different), G_N_ELEMENTS(sizes),
                            .of_model = 97, .of_size = 31, .of_shard = 1181 });
}
END_TEST

/*
 * Mixtures of experts on 1, 2, 4 and 8 ranks. The run routes in its own precision and the reference
 * in fp64. Initial weights separate all deciding logits (step_numerics.c), so that both choose the
 * same experts, also in bf16.
 */
START_TEST(experts)
{
    static const TinyStep different[] = {
        { .schedule = "zigzag", .experts = 4 },
        { .schedule = "zigzag", .experts = 8, .choices = 3, .shared = 1, .dense = 1, .layers = 3 },
        { .schedule = "ring", .experts = 3, .choices = 1, .shared = 2, .groups = 2 },
        { .schedule = "zigzag", .experts = 5, .gelu = true, .layer_norm = true, .batch = 2 },
        { .schedule = "lasp", .linear = true, .gate = true, .experts = 6, .dense = 1 },
        { .schedule = "zigzag", .experts = 4, .window = 5, .layers = 4, .dense = 3, .shared = 1 },
        { .schedule = "zigzag", .experts = 7, .choices = 7, .vocabulary = 61 },
    };
    static const Sizes sizes[] = { { 1, 1, 1 }, { 2, 1, 1 }, { 1, 2, 1 }, { 1, 1, 2 },
                                   { 2, 2, 1 }, { 4, 1, 1 }, { 2, 2, 2 }, { 4, 1, 2 } };

    check_family(&(Family){ different, sizes, G_N_ELEMENTS(different), G_N_ELEMENTS(sizes),
                            .of_model = 89, .of_size = 43, .of_shard = 1013 });
}
END_TEST

/* Losses of every kind, in chunks that do not divide the rows evenly and in single rows; tiled MLPs
 * of dense layers and shared experts. */
START_TEST(tiles)
{
    static const TinyStep different[] = {
        { .schedule = "zigzag", .loss = LH_LOSS_FUSED },
        { .schedule = "zigzag", .loss = LH_LOSS_FUSED_LINEAR, .chunk_rows = 3, .tied = true },
        { .schedule = "ring", .loss = LH_LOSS_CHUNKED, .chunk_rows = 4, .vocabulary = 61 },
        { .schedule = "ring", .loss = LH_LOSS_CHUNKED, .chunk_rows = 1, .batch = 2 },
        { .schedule = "ulysses", .loss = LH_LOSS_TILED, .chunk_rows = 5, .tile_rows = 7 },
        { .schedule = "zigzag", .tile_rows = 4, .gelu = true, .layer_norm = true },
        { .schedule = "zigzag", .tile_rows = 1000, .experts = 4, .shared = 1, .dense = 1 },
        { .schedule = "lasp", .linear = true, .tile_rows = 2, .batch = 3, .loss = LH_LOSS_FUSED },
    };
    static const Sizes sizes[] = {
        { 1, 1, 1 }, { 2, 1, 1 }, { 1, 2, 1 }, { 2, 2, 1 }, { 2, 2, 2 }
    };

    check_family(&(Family){ different, sizes, G_N_ELEMENTS(different), G_N_ELEMENTS(sizes),
                            .of_model = 151, .of_size = 67, .of_shard = 1109 });
}
END_TEST

/* Packed documents: one pack for all, and micro-batches and data-parallel ranks with their own,
 * with schedules that take documents, under every kind of parallelism. */
START_TEST(packs)
{
    static const TinyStep different[] = {
        { .schedule = "ring", .documents = 1 },
        { .schedule = "zigzag", .documents = 1, .batch = 2, .window = 5, .layers = 3 },
        { .schedule = "zigzag", .documents = 2, .micro_batches = 3 },
        { .schedule = "dfa-unbalanced", .documents = 2, .batch = 2, .groups = 2 },
        { .schedule = "te-allgather", .documents = 2, .micro_batches = 2, .window = 7 },
        { .schedule = "allgather-kv", .documents = 2, .micro_batches = 4, .tied = true },
        { .schedule = "ulysses", .documents = 2, .micro_batches = 2 },
        { .schedule = "striped", .documents = 2, .micro_batches = 2, .experts = 4 },
        { .schedule = "burst", .documents = 2, .micro_batches = 2, .tile_rows = 5 },
    };
    static const Sizes sizes[] = {
        { 1, 1, 1 }, { 1, 2, 1 }, { 2, 1, 2 }, { 1, 4, 1 }, { 2, 2, 2 }
    };

    check_family(&(Family){ different, sizes, G_N_ELEMENTS(different), G_N_ELEMENTS(sizes),
                            .of_model = 173, .of_size = 71, .of_shard = 1123 });
}
END_TEST

/* LoRA: adapters learn as in fp64, and the rest of the model keeps its bits (step_compare.c). */
START_TEST(adapters)
{
    enum { ATTENTION = LH_LORA_QKV | LH_LORA_PROJ, MLP = LH_LORA_FC1 | LH_LORA_FC2 };
    static const TinyStep different[] = {
        { .schedule = "zigzag", .rank = 4 },
        { .schedule = "zigzag", .rank = 3, .groups = 1, .targets = LH_LORA_QKV, .tied = true },
        { .schedule = "ring",
          .rank = 8,
          .targets = LH_LORA_PROJ,
          .gelu = true,
          .layer_norm = true },
        { .schedule = "ulysses", .rank = 5, .targets = LH_LORA_FC1, .batch = 2 },
        { .schedule = "zigzag", .rank = 4, .targets = LH_LORA_FC2, .window = 5, .layers = 4 },
        { .schedule = "zigzag", .rank = 4, .targets = ATTENTION, .experts = 4, .shared = 1 },
        { .schedule = "lasp", .rank = 4, .linear = true, .gate = true },
        { .schedule = "zigzag",
          .rank = 2,
          .tile_rows = 4,
          .loss = LH_LOSS_CHUNKED,
          .chunk_rows = 5 },
        { .schedule = "ring", .rank = 4, .targets = MLP, .tile_rows = 5, .gelu = true },
    };
    static const Sizes sizes[] = { { 1, 1, 1 }, { 2, 1, 1 }, { 1, 2, 1 }, { 1, 1, 2 },
                                   { 4, 1, 2 }, { 2, 2, 1 }, { 2, 2, 2 } };

    check_family(&(Family){ different, sizes, G_N_ELEMENTS(different), G_N_ELEMENTS(sizes),
                            .of_model = 79, .of_size = 53, .of_shard = 1031 });
}
END_TEST

/* Pipelines: every order, sharding and policy; models with unequal stages. */
START_TEST(pipelines)
{
    static const TinyStep different[] = {
        { .schedule = "zigzag", .stages = 2, .layers = 4 },
        { .schedule = "zigzag", .stages = 2, .tensor = 2, .data = 2, .layers = 4, .tied = true },
        { .schedule = "ring", .stages = 4, .context = 2, .layers = 8, .tied = true },
        { .schedule = "zigzag", .stages = 2, .chunks = 2, .data = 2, .layers = 8 },
        { .schedule = "ring", .stages = 2, .chunks = 3, .tensor = 2, .layers = 6, .tied = true },
        { .schedule = "zigzag", .stages = 4, .data = 2, .layers = 4, .order = LH_PIPELINE_GPIPE },
        { .schedule = "zigzag", .stages = 2, .data = 2, .layers = 4, .window = 5, .groups = 2 },
        { .schedule = "zigzag", .stages = 2, .layers = 4, .experts = 4, .dense = 1, .shared = 1 },
        { .schedule = "lasp",
          .stages = 2,
          .context = 2,
          .layers = 4,
          .linear = true,
          .gate = true },
        { .schedule = "ring",
          .stages = 3,
          .data = 2,
          .layers = 4,
          .embedding_counts = true,
          .loss_counts = true,
          .tied = true },
        { .schedule = "zigzag", .stages = 2, .chunks = 2, .layers = 7, .loss_counts = true },
        { .schedule = "zigzag",
          .stages = 2,
          .tensor = 2,
          .context = 2,
          .loss = LH_LOSS_CHUNKED,
          .chunk_rows = 5,
          .tile_rows = 8 },
        { .schedule = "zigzag", .stages = 2, .tensor = 2, .data = 2, .rank = 4, .tied = true },
        { .schedule = "ring", .stages = 2, .chunks = 2, .layers = 4, .rank = 4 },
        { .schedule = "zigzag", .stages = 2, .context = 2, .data = 2, .layers = 4, .documents = 2 },
        { .schedule = "ring", .stages = 2, .chunks = 2, .data = 2, .layers = 8, .documents = 2 },
    };
    const unsigned ways = LH_SHARDS * 2;

    for (unsigned k = 0; k < G_N_ELEMENTS(different) * ways; k++) {
        const unsigned m = k / ways, i = k % ways;
        TinyStep tiny = different[m];

        tiny.shard = (LhShard)(i % LH_SHARDS);
        tiny.checkpoint = (LhCheckpoint)((i + m) % LH_CHECKPOINTS);
        tiny.micro_batches = (tiny.chunks > 1 ? tiny.stages : 1) * (1 + i % 3);
        tiny.behaviour = behaviour_of(m * 131 + i * 59);
        tiny.dtype = i < LH_SHARDS ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
        if (test_takes(i + m))
            check(&tiny);
    }
}
END_TEST

#define MODULES(...) .checkpoint = LH_CHECKPOINT_SELECTIVE, .recompute.modules = __VA_ARGS__
#define LAYERS(how, n) .checkpoint = LH_CHECKPOINT_LAYER, .recompute = { 0, n, LH_RECOMPUTE_##how }
#define EACH(module) LH_RECOMPUTE_BIT(module)

/* Sets of modules of dense layers and of layers with experts, and some of the layers: on one rank,
 * with tensor parallelism, sharded, and in pipelines. */
START_TEST(recomputation)
{
    static const TinyStep different[] = {
        { MODULES(EACH(MLP)) },
        { MODULES(EACH(LAYERNORM)) },
        { MODULES(EACH(CORE_ATTN) | EACH(LAYERNORM) | EACH(MLP)), .gelu = true, .tied = true },
        { MODULES(EACH(MOE)), .experts = 4 },
        { MODULES(EACH(MOE_ACT)), .experts = 5, .gelu = true, .layer_norm = true },
        { MODULES(EACH(MLP) | EACH(MOE) | EACH(LAYERNORM)), .experts = 4, .shared = 1, .dense = 1 },
        { MODULES(EACH(LAYERNORM) | EACH(MOE_ACT) | EACH(SHARED_EXPERTS)), .experts = 3,
          .shared = 2 },
        { LAYERS(BLOCK, 1) },
        { LAYERS(EVERY, 2), .window = 5 },
        { LAYERS(UNIFORM, 2), .experts = 4, .dense = 1 },
        { LAYERS(UNIFORM, 3), .groups = 2 },
    };
    static const TinyStep sizes[] = {
        { .layers = 4 },
        { .tensor = 2, .layers = 3 },
        { .tensor = 2, .data = 2, .layers = 4, .micro_batches = 2 },
        { .tensor = 2, .stages = 2, .layers = 6, .micro_batches = 3 },
        { .data = 2, .stages = 2, .chunks = 2, .layers = 12, .micro_batches = 2 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(different) * G_N_ELEMENTS(sizes) * 2; i++) {
        const unsigned way = i / 2 % G_N_ELEMENTS(different);
        const TinyStep *size = &sizes[i / 2 / G_N_ELEMENTS(different)];
        TinyStep tiny = different[way];

        tiny.schedule = "zigzag";
        tiny.tensor = size->tensor != 0 ? size->tensor : 1;
        tiny.context = size->tensor == 0 && size->stages == 0 ? 2 : 1;
        tiny.data = size->data != 0 ? size->data : 1;
        tiny.stages = size->stages;
        tiny.chunks = size->chunks;
        tiny.layers = size->layers;
        tiny.micro_batches = MAX(size->micro_batches, 1);
        tiny.shard = i % 2 == 0 ? LH_SHARD_FSDP : LH_SHARD_ZERO1;
        tiny.dtype = (i + way) % 2 == 0 ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
        tiny.behaviour = behaviour_of(i * 211);
        tiny.behaviour.gather_again = i % 4 < 2;
        tiny.tile_rows = i % 9 == 4 ? 3 : 0;
        if (test_takes(i))
            check(&tiny);
    }
}
END_TEST

/* Ranks would be without any token of the vocabulary. */
START_TEST(small_vocabularies_are_refused)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(
        tiny_step(&(TinyStep){ .schedule = "zigzag", .tensor = 4, .vocabulary = 5 }, &error));
    ck_assert_msg(
        g_str_has_prefix(error->message,
                         "a vocabulary of 5 tokens, 2 on each of 4 tensor-parallel ranks, "
                         "leaves the last one without any; nearest legal tensor-parallel "
                         "sizes: 2"),
        "%s", error->message);
    check(&(TinyStep){ .schedule = "zigzag", .tensor = 4, .vocabulary = 7 });
}
END_TEST

/* ---- faults ---- */

/* A fault on one rank. */
typedef struct {
    const char *name;
    TinyStep tiny;
    /* The target: a kernel, or a collective on tensors of this kind, in one layer and one
     * micro-batch. */
    LhKernelId kernel;
    int collective; /* LhCollectiveKind; -1: a kernel */
    LhTensorKind tensor;
    uint16_t layer, micro_batch;
    enum { DROP, TWICE, AFRESH, NEXT_PIECE, WRONG_PLACE } what;
} Fault;

typedef struct {
    const Fault *fault;
    const LhProgram *program;
    gint hits; /* atomic */
} Injected;

#define FAULTY_RANK 1

static bool
is_hit(const Injected *in, uint32_t rank, const LhOp *op)
{
    const Fault *f = in->fault;

    return rank == FAULTY_RANK && op->module == 0 && op->layer == f->layer &&
           op->micro_batch == f->micro_batch;
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
    if (in->fault->what == NEXT_PIECE) /* of the gradient, which has two pieces */
        wrong.operands[0].data -= wrong.operands[0].part_bytes;
    if (in->fault->what == WRONG_PLACE)
        args.to_heads.start++;
    if (in->fault->what == AFRESH)
        args.first = true;
    if (in->fault->what == TWICE) {
        const enum lh_status status = at->device->call(at->state, kernel, call, at->stream);

        if (status != LH_STATUS_OK)
            return status;
        args.first = false;
    }
    return at->device->call(at->state, kernel, &wrong, at->stream);
}

/* Zeros in place of received data. */
static bool
land_nothing(void *data, uint32_t rank, const LhOp *op, const LhMessage *message)
{
    Injected *in = data;
    const Fault *f = in->fault;

    if (f->collective < 0 || op->kind != LH_OP_COLLECTIVE ||
        (int)op->collective.kind != f->collective || !is_hit(in, rank, op) ||
        in->program->slots[message->slot].kind != f->tensor)
        return true;
    g_atomic_int_inc(&in->hits);
    for (uint32_t i = 0; i < message->pieces_count; i++)
        memset(message->pieces[i].data, 0, message->pieces[i].bytes);
    return false;
}

#define KERNEL(id) .kernel = LH_KERNEL_ID_##id, .collective = -1
#define COLLECTIVE(which, of) .collective = LH_COLL_##which, .tensor = LH_TENSOR_##of
#define SIZED(t, c, d, s) .schedule = "zigzag", .tensor = t, .context = c, .data = d, .shard = s

static const Fault faults[] = {
    { "a product's gradient counted twice",
      { SIZED(1, 2, 1, LH_SHARD_DDP) },
      KERNEL(product_wgrad),
      .layer = 1,
      .what = TWICE },
    { "a product's gradient counted twice",
      { SIZED(2, 2, 2, LH_SHARD_FSDP), .micro_batches = 3 },
      KERNEL(product_wgrad),
      .layer = 1,
      .micro_batch = 1,
      .what = TWICE },
    { "gradients of two micro-batches forgotten",
      { SIZED(1, 1, 2, LH_SHARD_ZERO1), .micro_batches = 3 },
      KERNEL(product_wgrad),
      .layer = 0,
      .micro_batch = 2,
      .what = AFRESH },
    { "the gradient of a norm left out",
      { SIZED(2, 1, 1, LH_SHARD_DDP) },
      KERNEL(rms_norm_bwd),
      .layer = 1,
      .what = DROP },
    { "positions off by one",
      { SIZED(1, 2, 1, LH_SHARD_DDP) },
      KERNEL(rotary_q),
      .layer = 0,
      .what = WRONG_PLACE },
    { "keys rotated wrongly on the way back",
      { SIZED(1, 2, 1, LH_SHARD_DDP) },
      KERNEL(rotary_kv_bwd),
      .layer = 1,
      .what = WRONG_PLACE },
    { "another rank's piece of a gradient",
      { SIZED(1, 1, 2, LH_SHARD_ZERO1) },
      KERNEL(adam_fp32),
      .layer = 1,
      .what = NEXT_PIECE },
    { "no step of the optimizer for a layer",
      { SIZED(1, 2, 2, LH_SHARD_FSDP) },
      KERNEL(adam_fp32),
      .layer = 1,
      .what = DROP },
    { "a dropped residual",
      { SIZED(2, 1, 1, LH_SHARD_DDP) },
      KERNEL(residual),
      .layer = 1,
      .what = DROP },
    { "an expert's gradient counted twice",
      { SIZED(2, 2, 1, LH_SHARD_DDP), .experts = 4 },
      KERNEL(expert_product_wgrad),
      .layer = 1,
      .what = TWICE },
    { "copies of rows not added up",
      { SIZED(1, 2, 1, LH_SHARD_DDP), .experts = 4 },
      KERNEL(dispatch_bwd),
      .layer = 1,
      .what = DROP },
    { "no gradient of the router's logits",
      { SIZED(2, 1, 1, LH_SHARD_DDP), .experts = 4 },
      KERNEL(route_bwd),
      .layer = 0,
      .what = DROP },
    { "no sum of the router's gradient",
      { SIZED(2, 1, 1, LH_SHARD_DDP), .experts = 4 },
      COLLECTIVE(ALL_REDUCE, GRADIENT),
      .layer = 1 },
    { "an adapter that adds nothing",
      { SIZED(2, 1, 1, LH_SHARD_DDP), .rank = 4 },
      KERNEL(add_hidden),
      .layer = 1,
      .what = DROP },
    { "the gradient of a frozen norm left out",
      { SIZED(2, 1, 1, LH_SHARD_DDP), .rank = 4 },
      KERNEL(rms_norm_dgrad),
      .layer = 1,
      .what = DROP },
    { "no sum of an adapter's gradient",
      { SIZED(2, 1, 1, LH_SHARD_DDP), .rank = 4 },
      COLLECTIVE(ALL_REDUCE, GRADIENT),
      .layer = 1 },
    { "no all-reduce of gradients",
      { SIZED(1, 2, 1, LH_SHARD_DDP) },
      COLLECTIVE(ALL_REDUCE, GRADIENT),
      .layer = 1 },
    { "no reduction to pieces",
      { SIZED(1, 2, 2, LH_SHARD_ZERO2) },
      COLLECTIVE(REDUCE_SCATTER, GRADIENT),
      .layer = 1 },
    { "no reduction to shards",
      { SIZED(2, 1, 2, LH_SHARD_FSDP) },
      COLLECTIVE(REDUCE_SCATTER, GRADIENT),
      .layer = 0 },
    { "no sum of what tensor-parallel ranks share",
      { SIZED(2, 1, 1, LH_SHARD_DDP) },
      COLLECTIVE(ALL_REDUCE, GRADIENT),
      .layer = 0 },
    { "no sum of copied key-value heads",
      { SIZED(4, 1, 1, LH_SHARD_DDP), .groups = 2 },
      COLLECTIVE(ALL_REDUCE, GRADIENT),
      .layer = 1 },
    { "weights not gathered",
      { SIZED(1, 2, 2, LH_SHARD_FSDP) },
      COLLECTIVE(ALL_GATHER, WEIGHT),
      .layer = 1 },
    { "updated weights not gathered",
      { SIZED(1, 1, 2, LH_SHARD_ZERO1) },
      COLLECTIVE(ALL_GATHER, WEIGHT),
      .layer = 1 },
    { "rows not gathered",
      { SIZED(2, 1, 1, LH_SHARD_DDP) },
      COLLECTIVE(ALL_GATHER, HIDDEN),
      .layer = 1 },
    { "sums of rows not scattered",
      { SIZED(2, 2, 1, LH_SHARD_DDP) },
      COLLECTIVE(REDUCE_SCATTER, HIDDEN),
      .layer = 1 },
};

/* A fault exceeds the gates in fp32, and in bf16 if that has the same ops. */
static void
check_fault(const Fault *fault, LhDtype dtype)
{
    g_auto(LhErrorReport) report = { 0 };
    Fault here = *fault;
    Injected in = { .fault = &here };
    const LhRunHooks hooks = { .data = &in, .call = call_wrong, .land = land_nothing };
    g_autoptr(LhProgram) program = NULL;

    here.tiny.dtype = dtype;
    if (here.collective < 0 && here.kernel == LH_KERNEL_ID_adam_fp32 && dtype != LH_DTYPE_FP32)
        here.kernel = LH_KERNEL_ID_adam;
    program = program_of(&here.tiny);
    in.program = program;
    compare(&here.tiny, &hooks, &report);
    ck_assert_msg(in.hits > 0, "%s: has no target", fault->name);
    ck_assert_msg(!report.ok, "%s, %s: within the gates", fault->name, lh_dtype_names[dtype]);
}

START_TEST(faults_are_beyond_the_gates)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(faults); i++) {
        if (test_takes_of(i, 7))
            check_fault(&faults[i], LH_DTYPE_FP32);
        if (test_takes_of(i + 4, 7))
            check_fault(&faults[i], LH_DTYPE_BF16);
    }
}
END_TEST

/* ---- training ---- */

#define STEPS (test_is_short() ? 3U : 30U)

/* Trains on the cluster of the default scenario. Caller frees. */
static LhExecuted *
train(const LhProgram *program, const LhExecuteParams *params)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(GError) error = NULL;
    LhExecuteParams all = *params;
    LhExecuted *executed;

    scenario->ranks = lh_program_ranks(program);
    scenario->seed = SEED;
    setup = lh_setup_new(scenario, &error);
    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "");
    all.backend = &lh_backend_cpu;
    executed = lh_execute_program(setup, program, &all, &error);
    ck_assert_msg(executed != NULL, "%s", error != NULL ? error->message : "");
    return executed;
}

/* The same model and tokens on one rank and on eight: all losses are within this share of the
 * first loss of each other and of fp64, and they fall by this factor. */
#define CURVE_BOUND 1e-6
#define CURVE_FALLS 100.0

START_TEST(one_rank_and_eight_learn_the_same)
{
    const TinyStep tiny[] = {
        { .schedule = "zigzag", .batch = 2, .tokens = 32, .dtype = LH_DTYPE_FP32 },
        { SIZED(2, 2, 2, LH_SHARD_FSDP), .dtype = LH_DTYPE_FP32, .checkpoint = LH_CHECKPOINT_REMAT,
          .behaviour = { .reshard = true, .prefetch = 1, .overlap_reduce = true } },
    };
    g_autoptr(LhProgram) one = program_of(&tiny[0]), eight = program_of(&tiny[1]);
    const LhExecuteParams params = { .steps = STEPS };
    g_autoptr(LhExecuted) a = train(one, &params), b = train(eight, &params);

    ck_assert(lh_executed_ok(a) && lh_executed_ok(b));
    ck_assert(a->steps == STEPS && b->steps == STEPS && b->run->ranks_count == 8);
    for (unsigned i = 0; i < STEPS; i++) {
        ck_assert_msg(fabs(a->losses[i] - b->losses[i]) <= CURVE_BOUND * a->losses[0],
                      "step %u: %.9g on one rank, %.9g on eight", i, a->losses[i], b->losses[i]);
        ck_assert(fabs(a->losses[i] - a->reference_losses[i]) <= CURVE_BOUND * a->losses[0]);
        ck_assert(i == 0 || a->losses[i] < a->losses[i - 1]);
    }
    ck_assert_msg(STEPS < 30 || b->losses[STEPS - 1] * CURVE_FALLS < b->losses[0], "from %g to %g",
                  b->losses[0], b->losses[STEPS - 1]);
}
END_TEST

/* Every step has its own tokens; optimizer states persist between steps with every sharding. */
START_TEST(states_are_carried_on)
{
    for (unsigned shard = 0; shard < LH_SHARDS; shard++) {
        const TinyStep tiny = { SIZED(2, 1, 2, (LhShard)shard), .micro_batches = 2,
                                .dtype = shard % 2 == 0 ? LH_DTYPE_BF16 : LH_DTYPE_FP32,
                                .behaviour = behaviour_of(1024 + 13 * shard) };
        g_autoptr(LhProgram) program = NULL;
        g_autoptr(LhExecuted) executed = NULL;

        if (!test_takes_of(shard + 1, LH_SHARDS))
            continue;
        program = program_of(&tiny);
        executed =
            train(program, &(LhExecuteParams){ .steps = 4, .new_tokens = true, .repeat = 2 });
        ck_assert_msg(lh_executed_ok(executed), "%s", lh_shard_names[shard]);
        ck_assert(executed->same_bits && executed->repeats == 2);
        /* the tokens are different */
        ck_assert(executed->losses[3] > executed->losses[0] / 2);
    }
}
END_TEST

/* Verifier, simulator and executor have equal counts for a step. */
START_TEST(counts_agree)
{
    static const TinyStep tiny[] = {
        { SIZED(1, 1, 1, LH_SHARD_DDP) },
        { SIZED(2, 2, 2, LH_SHARD_FSDP), .micro_batches = 2, .checkpoint = LH_CHECKPOINT_LAYER },
        { SIZED(4, 1, 2, LH_SHARD_ZERO2), .groups = 2, .checkpoint = LH_CHECKPOINT_REMAT },
        { SIZED(2, 3, 1, LH_SHARD_ZERO1), .tokens = 24, .checkpoint = LH_CHECKPOINT_SELECTIVE },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(tiny); i++) {
        g_autoptr(LhProgram) program = program_of(&tiny[i]);
        g_autoptr(LhExecuted) executed = train(program, &(LhExecuteParams){ .repeat = 1 });

        ck_assert(executed->bytes_sent.equal && executed->flops.equal &&
                  executed->peak_bytes.equal && lh_executed_ok(executed));
    }
}
END_TEST

/* ---- timing ---- */

static void
pause_randomly(void *data, uint32_t rank, uint32_t op, uint32_t where)
{
    const uint64_t x = lh_rng_bits(GPOINTER_TO_UINT(data), rank, 2 * (uint64_t)op + where);

    if (x % 8 == 0)
        g_usleep(x >> 8 & 0xff);
}

/* Results are bit-identical whatever the timing. */
START_TEST(delays_change_nothing)
{
    const TinyStep tiny = { SIZED(2, 2, 2, LH_SHARD_FSDP), .micro_batches = 2,
                            .checkpoint = LH_CHECKPOINT_LAYER,
                            .behaviour = behaviour_of(1 + 2 + 4 + 8 + 16 + 1024) };
    g_autoptr(LhProgram) program = program_of(&tiny);
    g_autoptr(LhStepNumerics) numerics = lh_step_numerics_new(program, SEED, false);
    LhStepLoad load = { .numerics = numerics };
    g_autoptr(LhRunResult) plain = run(program, &load, NULL);

    for (unsigned seed = 1; seed <= 4; seed++) {
        const LhRunHooks hooks = { .data = GUINT_TO_POINTER(seed), .pause = pause_randomly };
        g_autoptr(LhRunResult) late = run(program, &load, &hooks);

        for (uint32_t rank = 0; rank < plain->ranks_count; rank++)
            ck_assert_mem_eq(plain->outputs[rank], late->outputs[rank], plain->output_bytes);
    }
}
END_TEST

/* ---- offload ---- */

/* Runs the first step of @tiny. Caller frees. */
static LhRunResult *
run_first(const TinyStep *tiny, const LhRunHooks *hooks)
{
    g_autoptr(LhProgram) program = program_of(tiny);
    g_autoptr(LhStepNumerics) numerics = lh_step_numerics_new(program, SEED, false);
    LhStepLoad load = { .numerics = numerics };

    return run(program, &load, hooks);
}

/* Runs @tiny with its offload and without: results are equal bit for bit, whatever the timing, and
 * the device needs less memory where activations dominate. */
static void
check_offload(const TinyStep *tiny, unsigned seed)
{
    TinyStep without = *tiny;
    g_autofree char *text = text_of(tiny);
    const LhRunHooks hooks = { .data = GUINT_TO_POINTER(seed), .pause = pause_randomly };
    g_autoptr(LhRunResult) offloaded = run_first(tiny, &hooks), plain = NULL;

    without.offload = 0;
    plain = run_first(&without, NULL);
    ck_assert_uint_eq(plain->output_bytes, offloaded->output_bytes);
    for (uint32_t rank = 0; rank < plain->ranks_count; rank++) {
        ck_assert_msg(
            memcmp(plain->outputs[rank], offloaded->outputs[rank], plain->output_bytes) == 0,
            "%s, %u layers offloaded: other results on rank %u", text, tiny->offload, rank);
        ck_assert_msg(offloaded->ranks[rank].peak_bytes + (tiny->tokens > 0) <=
                          plain->ranks[rank].peak_bytes,
                      "%s, %u layers offloaded: %" G_GUINT64_FORMAT
                      " bytes on the device of rank %u, %" G_GUINT64_FORMAT " without",
                      text, tiny->offload, offloaded->ranks[rank].peak_bytes, rank,
                      plain->ranks[rank].peak_bytes);
    }
    check(tiny);
}

START_TEST(offload)
{
    static const TinyStep tiny[] = {
        { .schedule = "zigzag", .layers = 6, .heads = 2, .tokens = 512 },
        { .schedule = "zigzag", .context = 2, .data = 2, .layers = 6, .micro_batches = 2 },
        { .schedule = "ring", .tensor = 2, .context = 2, .layers = 6, .groups = 2 },
        { .schedule = "zigzag", .stages = 2, .layers = 12, .micro_batches = 4 },
        { .schedule = "ring",
          .tensor = 2,
          .stages = 2,
          .data = 2,
          .layers = 12,
          .micro_batches = 3,
          .order = LH_PIPELINE_GPIPE },
        { .schedule = "zigzag", .stages = 2, .chunks = 2, .layers = 24, .micro_batches = 2 },
        { .schedule = "zigzag", .context = 2, .layers = 6, .experts = 4, .shared = 1, .dense = 1 },
        { .schedule = "lasp", .context = 2, .layers = 6, .linear = true, .gate = true },
    };
    static const LhRecompute some[] = { { 0 },
                                        { 0, 2, LH_RECOMPUTE_UNIFORM },
                                        { 0, 4, LH_RECOMPUTE_UNIFORM },
                                        { 0, 3, LH_RECOMPUTE_BLOCK },
                                        { 0, 2, LH_RECOMPUTE_EVERY } };
    const unsigned ways = LH_CHECKPOINTS * 2;

    for (unsigned i = 0; i < G_N_ELEMENTS(tiny) * ways; i++) {
        TinyStep one = tiny[i / ways];

        one.checkpoint = (LhCheckpoint)(i % LH_CHECKPOINTS);
        if (one.checkpoint == LH_CHECKPOINT_LAYER)
            one.recompute = some[i / LH_CHECKPOINTS % G_N_ELEMENTS(some)];
        one.offload = i / LH_CHECKPOINTS % 2 == 0 ? 5 : LH_STEP_OFFLOAD_ALL;
        one.shard = (LhShard)((i + i / ways) % LH_SHARDS);
        one.dtype = i % 3 == 0 ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
        one.behaviour = behaviour_of(i * 173 % BEHAVIOURS);
        if (test_takes(i))
            check_offload(&one, i + 1);
    }
}
END_TEST

/* ---- offload of optimizer states and weights ---- */

/* The part of @result that holds what @like says; NULL: none. */
static const unsigned char *
find_state(const LhProgram *program, const LhRunResult *result, uint32_t rank,
           const LhStepState *like, uint64_t *bytes)
{
    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        for (uint32_t part = 0; part < program->slots[slot].parts; part++) {
            LhStepState at;

            if (program->slots[slot].role != LH_SLOT_STATE ||
                !lh_step_state_at(program->step, rank, slot, part, &at))
                break;
            if (at.family != like->family || at.weight != like->weight || at.layer != like->layer ||
                at.part != like->part)
                continue;
            *bytes = program->slots[slot].part_bytes;
            return lh_run_output(result, program, rank, (uint16_t)slot, part);
        }
    }
    return NULL;
}

/* Bytes of a part of a state, without its padding. */
static uint64_t
state_bytes(const LhProgram *program, uint32_t rank, uint32_t slot, uint32_t part)
{
    const uint32_t each = lh_dtype_bytes(program->slots[slot].dtype);
    LhStepContents c;

    ck_assert(lh_step_contents(program, rank, (uint16_t)slot, part, &c));
    switch (c.state.family) {
    case LH_STEP_OF_MOMENTS:
        return 2 * c.count * each;
    case LH_STEP_OF_SCALES:
        return lh_moment_scales(c.count) * each;
    default:
        return c.count * each;
    }
}

/* Checks that @other holds what @plain does, which has every state on the device; weights may be in
 * host memory alone. */
static void
check_equal_states(const TinyStep *tiny, const LhProgram *plain, const LhRunResult *of_plain,
                   const LhProgram *other, const LhRunResult *of_other)
{
    g_autofree char *text = text_of(tiny);

    for (uint32_t rank = 0; rank < of_plain->ranks_count; rank++) {
        for (uint32_t slot = 0; slot < plain->slots_count; slot++) {
            for (uint32_t part = 0; part < plain->slots[slot].parts; part++) {
                const unsigned char *there;
                LhStepState at;
                uint64_t bytes = 0;

                if (plain->slots[slot].role != LH_SLOT_STATE ||
                    !lh_step_state_at(plain->step, rank, slot, part, &at) ||
                    at.family == LH_STEP_OF_GRADIENT || at.family == LH_STEP_OF_GRADIENT_SHARD ||
                    (at.weight == LH_STEP_WEIGHTS && at.family != LH_STEP_OF_LOSS))
                    break;
                if (tiny->offload_param &&
                    (at.family == LH_STEP_OF_WEIGHT || at.family == LH_STEP_OF_WEIGHT_SHARD))
                    at.family = LH_STEP_OF_HOST_WEIGHT;
                there = find_state(other, of_other, rank, &at, &bytes);
                ck_assert_msg(
                    there != NULL && bytes == plain->slots[slot].part_bytes &&
                        memcmp(there, lh_run_output(of_plain, plain, rank, (uint16_t)slot, part),
                               state_bytes(plain, rank, slot, part)) == 0,
                    "%s: another %s of %s, layer %u, part %u on rank %u", text,
                    plain->slots[slot].name,
                    at.weight < LH_STEP_WEIGHTS ? lh_step_weight_name(at.weight) : "the rank",
                    at.layer, at.part, rank);
            }
        }
    }
}

/* Runs @tiny with its optimizer on the host and without; results are equal bit for bit, whatever
 * the timing, unless the norm, or gradients of several micro-batches on one rank, are summed in
 * another way. */
static void
check_host_states(const TinyStep *tiny, unsigned seed)
{
    TinyStep without = *tiny;
    const LhRunHooks hooks = { .data = GUINT_TO_POINTER(seed), .pause = pause_randomly };
    const bool early = tiny->shard >= LH_SHARD_ZERO2;
    const bool alone = MAX(tiny->data, 1) * MAX(tiny->context, 1) == 1 && tiny->micro_batches > 1;
    const bool apart = tiny->optimizer_offload < 1 && tiny->behaviour.clip > 0;
    g_autoptr(LhProgram) other = program_of(tiny), plain = NULL;
    g_autoptr(LhStepNumerics) numerics = lh_step_numerics_new(other, SEED, false);
    LhStepLoad load = { .numerics = numerics };
    g_autoptr(LhRunResult) of_other = NULL, of_plain = NULL;
    g_autoptr(LhVerdict) verdict = lh_verify(other);
    g_autofree char *text = text_of(tiny);

    ck_assert_msg(verdict->findings_total == 0, "%s: %s", text, first_message(verdict));
    of_other = run(other, &load, &hooks);
    without.optimizer_offload = 0;
    without.offload_param = false;
    plain = program_of(&without);
    of_plain = run_first(&without, NULL);
    if (!early || (!alone && !apart))
        check_equal_states(tiny, plain, of_plain, other, of_other);
    check(tiny);
}

START_TEST(host_states)
{
    static const TinyStep tiny[] = {
        { .schedule = "zigzag", .micro_batches = 2 },
        { .schedule = "zigzag", .context = 2, .data = 2, .micro_batches = 2 },
        { .schedule = "ring", .tensor = 2, .data = 3, .groups = 2, .vocabulary = 61 },
        { .schedule = "zigzag", .stages = 2, .data = 2, .layers = 4, .micro_batches = 3 },
        { .schedule = "ring",
          .stages = 2,
          .tensor = 2,
          .data = 2,
          .layers = 2,
          .tied = true,
          .micro_batches = 2 },
        { .schedule = "zigzag",
          .stages = 2,
          .chunks = 2,
          .layers = 4,
          .micro_batches = 2,
          .tied = true },
        { .schedule = "zigzag", .context = 2, .experts = 4, .dense = 1, .layers = 3 },
        { .schedule = "lasp", .context = 2, .data = 4, .linear = true, .gate = true },
        { .schedule = "zigzag", .data = 2, .rank = 2, .layers = 3 },
    };
    static const double shares[] = { 1, 0.5, 1, 0.01, 1, 0.9 };
    const unsigned ways = 24;

    for (unsigned i = 0; i < G_N_ELEMENTS(tiny) * ways; i++) {
        TinyStep one = tiny[i / ways];

        one.shard = (LhShard)(i % LH_SHARDS);
        one.optimizer_offload = shares[i / LH_SHARDS % G_N_ELEMENTS(shares)];
        one.overlap_copies = i / LH_SHARDS % 2 != 0;
        one.offload_param =
            one.shard == LH_SHARD_FSDP && one.optimizer_offload >= 1 && i / LH_SHARDS % 3 != 0;
        one.offload = i % 5 == 0 ? 1 : 0;
        one.checkpoint = (LhCheckpoint)(i % 3 % LH_CHECKPOINTS);
        one.dtype = i % 3 == 0 ? LH_DTYPE_FP32 : LH_DTYPE_BF16;
        one.behaviour = behaviour_of(i * 389 % BEHAVIOURS);
        one.behaviour.no_master = i % 4 == 3 && one.dtype != LH_DTYPE_FP32;
        one.behaviour.moments = (LhMoments)(one.dtype == LH_DTYPE_FP32 ? 0 : i % LH_MOMENTS);
        if (test_takes(i))
            check_host_states(&one, i + 1);
    }
}
END_TEST

LH_TEST_MAIN("step_run", policies_and_shardings, offload, host_states, models, experts, tiles,
             adapters, packs, schedules, pipelines, recomputation, faults_are_beyond_the_gates,
             behaviours, small_vocabularies_are_refused, one_rank_and_eight_learn_the_same,
             states_are_carried_on, counts_agree, delays_change_nothing)
