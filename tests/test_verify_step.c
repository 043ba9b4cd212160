/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training steps are proven for every parallel size, policy, sharding and schedule, and for every
 * kind of layer. Combinations are taken in turn, the same ones in every run; LONGHAUL_TEST_ALL
 * takes all.
 */
#include "base/error.h"
#include "run_tests.h"
#include "share.h"
#include "step/legality.h"
#include "step/step_private.h"
#include "steps.h"
#include "verify/verify.h"

#include <string.h>

static bool
take_all(void)
{
    return g_getenv("LONGHAUL_TEST_ALL") != NULL;
}

static char *
tiny_text(const TinyStep *t)
{
    return g_strdup_printf(
        "%s tp %u cp %u dp %u pp %u chunks %u ends count %d %d gpipe %d layers "
        "%u m %u batch %u groups %u shard %d "
        "checkpoint %d vocabulary %u unit %d halves %d reshard %d prefetch %u "
        "reduce %d each %d stay %d tensor %d clip %g step bytes %u logits %d "
        "again %d copies %u logits stay %d unfused %u %u, "
        "%u of %u experts, %u shared, %u dense, modules %x, layers %u by method %d, documents %u, "
        "rank %u of %u",
        t->schedule, t->tensor, t->context, t->data, t->stages, t->chunks, t->embedding_counts,
        t->loss_counts, t->order == LH_PIPELINE_GPIPE, t->layers, t->micro_batches, t->batch,
        t->groups, (int)t->shard, (int)t->checkpoint, (unsigned)t->vocabulary,
        t->behaviour.unit_is_model, t->behaviour.halves, t->behaviour.reshard,
        t->behaviour.prefetch, t->behaviour.overlap_reduce, t->behaviour.reduce_each,
        t->behaviour.gradients_stay, t->behaviour.overlap_tensor, t->behaviour.clip,
        t->behaviour.step_bytes, t->behaviour.logits_fp32, t->behaviour.gather_again,
        t->behaviour.copy_bytes, t->behaviour.logits_stay, t->behaviour.unfused_bytes,
        t->behaviour.unfused_loss, t->choices, t->experts, t->shared, t->dense,
        t->recompute.modules, t->recompute.layers, t->recompute.method, t->documents, t->rank,
        t->targets);
}

/* Proves @tiny; returns false if it is refused. */
static bool
prove(const TinyStep *tiny)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = tiny_step(tiny, &error);
    g_autoptr(LhVerdict) verdict = NULL;
    g_autofree char *text = tiny_text(tiny);

    if (program == NULL) {
        ck_assert_int_eq(error->code, LH_ERROR_NO);
        return false;
    }
    verdict = lh_verify(program);
    ck_assert_msg(verdict->findings_total == 0, "%s: %u findings; %s", text,
                  (unsigned)verdict->findings_total,
                  g_array_index(verdict->findings, LhFinding, 0).message);
    ck_assert_msg(verdict->one_queue, "%s: %s", text, verdict->queue_cycle);
    return true;
}

/* Framework behaviours, selected by the bits of @number. */
static LhStepBehaviour
behaviour_of(uint32_t number)
{
    return (LhStepBehaviour){
        .overlap_tensor = (number & 1) != 0,
        .overlap_reduce = (number & 2) != 0,
        .reshard = (number & 4) != 0,
        .prefetch = number >> 3 & 1,
        .clip = (number & 16) != 0 ? 1 : 0,
        .reduce_each = (number & 32) != 0,
        .gradients_stay = (number & 64) != 0,
        .logits_fp32 = (number & 128) != 0,
        .halves = (number & 256) != 0,
        .unit_is_model = (number & 512) != 0,
        .step_bytes = (number & 1024) != 0 ? 4 : 0,
        .gather_again = (number & 4096) != 0,
        .copy_bytes = (number & 8192) != 0 ? 6 : 0,
        .logits_stay = (number & 16384) != 0,
        .unfused_bytes = (number & 32768) != 0 ? 6 : 0,
        .unfused_loss = (number & 65536) != 0 ? 2 : 0,
        .gradients_fp32 = (number & 2048) != 0,
    };
}

/* A hash of a number. */
static uint32_t
scramble(uint32_t number)
{
    uint64_t x = (number + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);

    x ^= x >> 29;
    return (uint32_t)(x * UINT64_C(0xbf58476d1ce4e5b9) >> 33);
}

#define MICRO_BATCHES 4 /* at most */

/* Policy, sharding, micro-batches and layers. */
static void
set_variant(TinyStep *tiny, uint32_t variant)
{
    tiny->shard = (LhShard)(variant % LH_SHARDS);
    tiny->checkpoint = (LhCheckpoint)(variant / LH_SHARDS % LH_CHECKPOINTS);
    tiny->micro_batches = 1 + variant / (LH_SHARDS * LH_CHECKPOINTS) % MICRO_BATCHES;
    tiny->layers = 2 + variant / (LH_SHARDS * LH_CHECKPOINTS * MICRO_BATCHES) % 2;
}

#define VARIANTS (LH_SHARDS * LH_CHECKPOINTS * MICRO_BATCHES * 2)

/* Proves all variants of @tiny, or some of them: those derived from the numbers from @number on.
 * Returns the next number. */
static uint32_t
prove_variants(TinyStep *tiny, uint32_t number)
{
    const uint32_t variants = take_all() ? VARIANTS : 6;

    for (uint32_t i = 0; i < variants; i++, number++) {
        tiny->behaviour = behaviour_of(scramble(number));
        set_variant(tiny, take_all() ? i : scramble(number) / 64 % VARIANTS);
        if (test_takes(number))
            ck_assert(prove(tiny));
    }
    return number;
}

/* Every product of sizes up to 16. */
START_TEST(sizes_are_proven)
{
    uint32_t number = 0;

    for (uint32_t t = 1; t <= 16; t++) {
        for (uint32_t c = 1; t * c <= 16; c++) {
            for (uint32_t d = 1; t * c * d <= 16; d++) {
                TinyStep tiny = { .schedule = "zigzag",
                                  .tensor = t,
                                  .context = c,
                                  .data = d,
                                  .heads = t * ((7 + t) / t),
                                  .vocabulary = 8 * t,
                                  .tokens = 2 * t * ((15 + t) / t) };

                number = prove_variants(&tiny, number);
            }
        }
    }
}
END_TEST

/* The order of a pipeline for these micro-batches and layers per chunk. */
static void
set_pipeline(TinyStep *tiny, uint32_t stages, uint32_t number)
{
    tiny->stages = stages;
    tiny->order = number % 4 == 3 ? LH_PIPELINE_GPIPE : LH_PIPELINE_1F1B;
    tiny->chunks = number % 4 == 2 && tiny->micro_batches % stages == 0 ? 2 : 1;
    tiny->embedding_counts = scramble(number) % 5 % 2 == 1;
    tiny->loss_counts = scramble(number) % 5 > 2;
    tiny->layers *= stages * tiny->chunks;
    tiny->layers -= (tiny->embedding_counts ? 1u : 0) + (tiny->loss_counts ? 1u : 0);
}

/* Variants of steps of these sizes with a pipeline, from @number on; returns the next one. */
static uint32_t
prove_pipelines(const TinyStep *sizes, uint32_t stages, uint32_t number)
{
    const uint32_t variants = take_all() ? VARIANTS : 2;

    for (uint32_t i = 0; i < variants; i++, number++) {
        TinyStep tiny = *sizes;

        tiny.tied = scramble(number) % 3 == 0;
        tiny.behaviour = behaviour_of(scramble(number));
        set_variant(&tiny, take_all() ? i : scramble(number) / 64 % VARIANTS);
        set_pipeline(&tiny, stages, number);
        if (test_takes(number))
            ck_assert(prove(&tiny));
    }
    return number;
}

/* Every product of @stages with other sizes up to 16. */
static uint32_t
prove_stages(uint32_t stages, uint32_t number)
{
    const uint32_t most = 16 / stages;

    for (uint32_t t = 1; t <= most; t++) {
        for (uint32_t c = 1; t * c <= most; c++) {
            for (uint32_t d = 1; t * c * d <= most; d++) {
                const TinyStep sizes = { .schedule = "zigzag",
                                         .tensor = t,
                                         .context = c,
                                         .data = d,
                                         .heads = t * ((7 + t) / t),
                                         .vocabulary = 8 * t,
                                         .tokens = 2 * t * ((15 + t) / t) };

                number = prove_pipelines(&sizes, stages, number);
            }
        }
    }
    return number;
}

/* Two and three layers per chunk. */
START_TEST(pipelines_are_proven)
{
    uint32_t number = 0;

    for (uint32_t stages = 2; stages <= 16; stages++)
        number = prove_stages(stages, number);
}
END_TEST

/* Every policy with every sharding, number of micro-batches and layers. */
START_TEST(variants_are_proven)
{
    for (uint32_t i = 0; i < VARIANTS; i++) {
        TinyStep tiny = { .schedule = "zigzag", .tensor = 2, .context = 2, .data = 2 };

        tiny.dtype = (LhDtype)(i % 3);
        tiny.behaviour = behaviour_of(scramble(i));
        set_variant(&tiny, i);
        ck_assert(!test_takes(i) || prove(&tiny));
    }
}
END_TEST

/* Every framework behaviour that changes a step, alone and combined. */
START_TEST(behaviours_are_proven)
{
    for (uint32_t bits = 0; bits < 4096; bits += take_all() ? 1 : 37) {
        for (unsigned shard = 0; shard < LH_SHARDS; shard++) {
            TinyStep tiny = { .schedule = "ring",
                              .tensor = 1 + bits % 2,
                              .context = 2,
                              .data = 1 + bits / 2 % 2,
                              .micro_batches = 2,
                              .shard = (LhShard)shard,
                              .checkpoint = (LhCheckpoint)(bits % LH_CHECKPOINTS) };

            tiny.behaviour = behaviour_of(bits);
            ck_assert(!test_takes(bits + (unsigned)shard) || prove(&tiny));
        }
    }
}
END_TEST

/* Losses of every kind and tiled MLPs, with every policy; numbers of tiles that do not divide the
 * segments. */
START_TEST(tiles_are_proven)
{
    for (uint32_t i = 0; i < 4 * LH_LOSSES * LH_CHECKPOINTS; i++) {
        TinyStep tiny = { .schedule = "zigzag",
                          .tensor = 1 + i % 2,
                          .context = 2,
                          .micro_batches = 1 + i / 2 % 2,
                          .batch = 1 + i % 3,
                          .experts = i % 5 == 0 ? 4 : 0,
                          .shared = i % 2,
                          .loss = (LhLoss)(i / 4 % LH_LOSSES),
                          .chunk_rows = 1 + scramble(i) % 9,
                          .tile_rows = i % 3 == 0 ? 0 : 1 + scramble(i + 1) % 7,
                          .checkpoint = (LhCheckpoint)(i / 4 / LH_LOSSES) };

        tiny.behaviour = behaviour_of(scramble(i));
        ck_assert(!test_takes(i) || prove(&tiny));
    }
}
END_TEST

/* Packed documents, of all micro-batches or of each, with every schedule that takes them. */
START_TEST(packs_are_proven)
{
    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        const bool takes = (lh_schedules[s]->masks & LH_MASKS_DOCUMENTS) != 0;
        bool any = false;

        for (uint32_t i = 0; i < 12 && (takes || i == 0); i++) {
            TinyStep tiny = { .schedule = lh_schedules[s]->name,
                              .tensor = 1 + i % 2,
                              .context = i < 8 ? 4 : 2,
                              .data = 1 + i / 2 % 2,
                              .stages = i % 3 == 2 ? 2 : 1,
                              .window = i % 4 == 3 ? 5 : 0,
                              .batch = 1 + i / 4 % 2,
                              .documents = 1 + (i % 5 != 0) };

            tiny.behaviour = behaviour_of(scramble(i + s));
            set_variant(&tiny, scramble(12 * s + i));
            if (!any || test_takes_of(s + i, 5))
                any |= prove(&tiny);
        }
        ck_assert_msg(any == (takes && lh_schedules[s]->placement != LH_PLACE_HEADS), "%s",
                      lh_schedules[s]->name);
    }
}
END_TEST

/* Attention under the documents of other micro-batches, or of other data-parallel ranks, on all
 * ranks of a group. */
START_TEST(packs_that_are_exchanged_are_found)
{
    const TinyStep tiny = {
        .schedule = "zigzag", .context = 2, .data = 2, .micro_batches = 2, .documents = 2
    };

    for (uint32_t i = 1; i < 4; i++) {
        g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);
        uint32_t *numbers = program->step->pack_numbers;
        g_autoptr(LhVerdict) verdict = NULL;
        const uint32_t first = numbers[0];

        numbers[0] = numbers[i];
        numbers[i] = first;
        verdict = lh_verify(program);
        ck_assert_uint_gt(verdict->findings_total, 0);
        ck_assert_ptr_nonnull(strstr(g_array_index(verdict->findings, LhFinding, 0).message,
                                     "under the mask of another micro-batch than 0"));
    }
}
END_TEST

/* One pack for all, or one for each micro-batch of each data-parallel rank. */
START_TEST(numbers_of_packs_are_checked)
{
    const TinyStep tiny = { .schedule = "zigzag", .data = 2, .micro_batches = 2, .documents = 2 };
    g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);
    const LhStepParams *of = lh_step_params(program);
    g_autoptr(LhModel) model = tiny_model(&tiny);
    LhStepParams p = *of;
    g_autoptr(GError) error = NULL;

    ck_assert_uint_eq(of->packs_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t count;
        g_autofree uint64_t *ends = tiny_pack(16, i, &count);

        ck_assert_uint_eq(of->packs[i].count, count);
        ck_assert_mem_eq(of->packs[i].ends, ends, count * sizeof(*ends));
    }
    p.model = model;
    p.packs_count = 3;
    ck_assert_ptr_null(lh_step_new(&p, &error));
    ck_assert_str_eq(error->message, "found 3 packs of documents; allowed: 1, or one for each "
                                     "micro-batch of each data-parallel rank, 2 x 2 = 4");
}
END_TEST

/* LoRA of every set of targets, with every policy and sharding. */
START_TEST(adapters_are_proven)
{
    for (uint32_t i = 0; i < LH_LORA_ALL * LH_CHECKPOINTS * LH_SHARDS; i++) {
        const uint32_t targets = 1 + i % LH_LORA_ALL;
        const bool experts = (targets & (LH_LORA_FC1 | LH_LORA_FC2)) == 0 && i % 2 == 0;
        TinyStep tiny = { .schedule = "zigzag",
                          .tensor = 1 + i % 2,
                          .context = 1 + i / 2 % 2,
                          .data = 2,
                          .micro_batches = 1 + i / 3 % 2,
                          .groups = i % 5 == 0 ? 1 : 0,
                          .tied = i % 4 == 0,
                          .gate = i % 7 == 0,
                          .experts = experts ? 4 : 0,
                          .tile_rows = i % 3 == 0 ? 5 : 0,
                          .rank = 1 + i % 4,
                          .targets = targets,
                          .checkpoint = (LhCheckpoint)(i / LH_LORA_ALL % LH_CHECKPOINTS),
                          .shard = (LhShard)(i / LH_LORA_ALL / LH_CHECKPOINTS) };

        tiny.behaviour = behaviour_of(scramble(i));
        if (tiny.checkpoint == LH_CHECKPOINT_SELECTIVE && i % 4 != 0)
            tiny.recompute.modules =
                LH_RECOMPUTE_BIT(LAYERNORM) | (experts      ? LH_RECOMPUTE_BIT(MOE)
                                               : i % 3 == 0 ? LH_RECOMPUTE_BIT(MLP)
                                                            : LH_RECOMPUTE_BIT(CORE_ATTN));
        else if (tiny.checkpoint == LH_CHECKPOINT_LAYER && i % 2 == 0)
            tiny.recompute = (LhRecompute){ 0, 2, LH_RECOMPUTE_UNIFORM };
        ck_assert(!test_takes(i) || prove(&tiny));
    }
}
END_TEST

/* MLPs of experts have no adapters; a rank has at least a number of each. */
START_TEST(impossible_adapters_are_refused)
{
    static const struct {
        TinyStep tiny;
        const char *why;
    } refused[] = {
        { { .schedule = "zigzag", .experts = 4, .rank = 2 },
          "LoRA does not adapt MLPs of models with experts: leave linear_fc1 and linear_fc2 out of "
          "the targets; allowed: linear_qkv, linear_proj" },
        { { .schedule = "zigzag", .rank = 65 },
          "a LoRA rank of 65 exceeds the width of the model, 64" },
        { { .schedule = "zigzag", .rank = 2, .targets = 16 }, "LoRA needs at least one target" },
        { { .schedule = "zigzag", .data = 50, .shard = LH_SHARD_FSDP, .rank = 1 },
          "some of 50 ranks would have no piece of an adapter of 64 elements, which LoRA does not "
          "support: give a larger rank, or the sharding ddp" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(tiny_step(&refused[i].tiny, &error));
        ck_assert_str_eq(error->message, refused[i].why);
    }
}
END_TEST

/* All schedules except megatron-tp-sp, which is tensor parallelism itself. */
START_TEST(schedules_are_proven)
{
    uint32_t proven = 0;

    for (uint32_t s = 0; lh_schedules[s] != NULL; s++) {
        bool any = false;

        for (uint32_t i = 0; i < 8; i++) {
            TinyStep tiny = {
                .schedule = lh_schedules[s]->name,
                .linear = strncmp(lh_schedules[s]->name, "lasp", 4) == 0 ||
                          strcmp(lh_schedules[s]->name, "zeco") == 0,
                .tensor = 1 + i % 2,
                .context = i < 4   ? 4
                           : i < 6 ? 2
                                   : 9,
                .data = i == 3 ? 2 : 1,
                .layers = 2,
                .tokens = 32,
                .groups = i == 1 || i == 5 ? 2 : 0,
            };

            tiny.behaviour = behaviour_of(scramble(i));
            set_variant(&tiny, scramble(8 * s + i));
            if (!any || test_takes_of(s + i, 5))
                any |= prove(&tiny);
        }
        ck_assert_msg(any || strcmp(lh_schedules[s]->name, "megatron-tp-sp") == 0, "%s",
                      lh_schedules[s]->name);
        proven += any;
    }
    ck_assert_uint_eq(proven, 21);
}
END_TEST

/* Kinds of layers and of models; every number of tensor-parallel ranks with every number of
 * key-value heads. */
START_TEST(models_are_proven)
{
    uint32_t number = 0;

    for (uint32_t bits = 0; bits < 512; bits += take_all() ? 1 : 7) {
        TinyStep tiny = {
            .schedule = (bits & 1) != 0 ? "lasp" : "zigzag",
            .linear = (bits & 1) != 0,
            .gate = (bits & 2) != 0,
            .tied = (bits & 4) != 0,
            .gelu = (bits & 8) != 0,
            .layer_norm = (bits & 16) != 0,
            .batch = (bits & 32) != 0 ? 2 : 1,
            .window = (bits & 1) == 0 && (bits & 64) != 0 ? 12 : 0,
            .vocabulary = (bits & 128) != 0 ? 61 : 64,
            .dtype = (bits & 256) != 0 ? LH_DTYPE_FP32 : LH_DTYPE_BF16,
            .tensor = 1 + bits / 2 % 4 * (bits / 2 % 4 == 2 ? 0 : 1),
            .context = 1 + bits % 3,
            .data = 1 + bits / 3 % 3,
            .tokens = 48,
        };

        if (tiny.tensor == 3)
            tiny.tensor = 4;
        tiny.behaviour = behaviour_of(scramble(bits));
        set_variant(&tiny, scramble(bits + 512));
        if (test_takes(number++))
            ck_assert(prove(&tiny));
    }
}
END_TEST

START_TEST(shared_heads_are_proven)
{
    uint32_t number = 0;

    for (uint32_t t = 1; t <= 8; t *= 2) {
        for (uint32_t groups = 1; groups <= 8; groups *= 2) {
            for (uint32_t i = 0; i < 4; i++) {
                TinyStep tiny = { .schedule = i % 2 == 0 ? "ulysses" : "zigzag",
                                  .tensor = t,
                                  .context = 2,
                                  .data = 1 + i / 2,
                                  .groups = groups,
                                  .tokens = 32 };

                tiny.behaviour = behaviour_of(scramble(i + 4 * groups));
                set_variant(&tiny, scramble(t + 16 * groups + i));
                if (test_takes_of(number++, 5))
                    prove(&tiny);
            }
        }
    }
}
END_TEST

/* A window in every second layer. */
START_TEST(patterns_are_proven)
{
    for (uint32_t i = 0; i < 16; i++) {
        TinyStep tiny = { .schedule = "zigzag",
                          .tensor = 1 + i % 2,
                          .context = 2,
                          .data = 1 + i / 2 % 2,
                          .window = 12,
                          .groups = 4,
                          .tied = i % 3 == 0 };

        tiny.behaviour = behaviour_of(scramble(i));
        set_variant(&tiny, scramble(i + 100));
        tiny.layers = 4;
        ck_assert(prove(&tiny));
    }
}
END_TEST

/* Mixtures of experts: with shared experts, after dense layers, with numbers of rows that do not
 * divide among experts; with every policy and sharding. */
START_TEST(experts_are_proven)
{
    static const uint32_t sizes[][3] = { { 1, 1, 1 }, { 2, 1, 1 }, { 1, 2, 2 },
                                         { 2, 2, 1 }, { 4, 1, 2 }, { 2, 2, 2 } };

    for (uint32_t i = 0; i < VARIANTS; i++) {
        const uint32_t *size = sizes[i % G_N_ELEMENTS(sizes)];
        TinyStep tiny = {
            .schedule = i % 5 == 0 ? "lasp" : "zigzag",
            .linear = i % 5 == 0,
            .gate = i % 10 == 0,
            .gelu = i % 4 == 1,
            .layer_norm = i % 4 == 1,
            .tensor = size[0],
            .context = size[1],
            .data = size[2],
            .experts = 3 + i % 4,
            .choices = 1 + i % 3,
            .shared = i / 2 % 3,
            .dense = i / 3 % 3,
            .tied = i % 7 == 0,
            .groups = i % 9 == 0 && i % 5 != 0 ? 2 : 0,
            .window = i % 5 == 1 ? 12 : 0,
        };

        tiny.behaviour = behaviour_of(scramble(i + 7));
        set_variant(&tiny, i);
        if (tiny.window > 0)
            tiny.layers = 4;
        if (test_takes_of(i, 7))
            ck_assert(prove(&tiny));
    }
}
END_TEST

static void
check_refusal(const TinyStep *tiny, const LhModelWeights *weights, const char *message)
{
    g_autoptr(LhModel) model = tiny_model(tiny);
    g_autoptr(GError) error = NULL;
    LhStepParams p = {
        .model = model,
        .module = { .ranks = 1 },
        .tensor_parallel = MAX(tiny->tensor, 1),
        .data_parallel = 1,
        .micro_batches = 1,
    };

    if (weights != NULL)
        model->weights = *weights;
    ck_assert(!lh_step_check(&p, &error));
    ck_assert_str_eq(error->message, message);
}

/* Layers that steps do not support, and experts that cannot be split. */
/* Whether the layers of @tiny have what it recomputes, and no module lies within another. */
static bool
has_modules(const TinyStep *tiny)
{
    const uint32_t set = tiny->recompute.modules;
    const uint32_t inside = LH_RECOMPUTE_BIT(MOE_ACT) | LH_RECOMPUTE_BIT(SHARED_EXPERTS);
    const uint32_t of_experts = LH_RECOMPUTE_BIT(MOE) | LH_RECOMPUTE_BIT(MOE_ACT);

    return (set & LH_RECOMPUTE_BIT(MLA_UP_PROJ)) == 0 &&
           ((set & LH_RECOMPUTE_BIT(MOE)) == 0 || (set & inside) == 0) &&
           ((set & LH_RECOMPUTE_BIT(MLP)) == 0 || tiny->experts == 0 || tiny->dense > 0) &&
           ((set & of_experts) == 0 || tiny->experts > 0) &&
           ((set & LH_RECOMPUTE_BIT(SHARED_EXPERTS)) == 0 || tiny->shared > 0);
}

/* Sizes of a step whose recomputation varies. */
static TinyStep
recomputed_step(uint32_t number)
{
    TinyStep tiny = {
        .schedule = number % 5 == 4 ? "lasp" : "zigzag",
        .linear = number % 5 == 4,
        .gate = number % 5 == 4 && number % 2 == 0,
        .tensor = 1 + number % 2,
        .context = 1 + number / 2 % 2,
        .data = 1 + number / 4 % 2,
        .stages = number % 3 == 0 ? 2 : 1,
        .layers = number % 3 == 0 ? 8 : 4,
        .micro_batches = 2,
        .shard = (LhShard)(number / 3 % LH_SHARDS),
        .behaviour = behaviour_of(scramble(number)),
    };

    tiny.chunks = number % 6 == 0 ? 2 : 1;
    if (scramble(number) % 3 > 0)
        tiny.experts = 4;
    tiny.shared = tiny.experts > 0 ? scramble(number) % 2 : 0;
    tiny.dense = tiny.experts > 0 ? scramble(number) / 2 % 2 : 0;
    tiny.tile_rows = scramble(number) / 4 % 3 == 0 ? 5 : 0;
    tiny.loss = (LhLoss)(scramble(number) / 16 % LH_LOSSES);
    return tiny;
}

/* Every set of modules is proven, or refused if and only if a layer lacks one of them. */
START_TEST(modules_are_proven)
{
    uint32_t proven = 0;

    for (uint32_t i = 0; i < 4 << LH_RECOMPUTE_MODULES; i++) {
        TinyStep tiny = recomputed_step(scramble(i) / 16);

        tiny.checkpoint = LH_CHECKPOINT_SELECTIVE;
        tiny.recompute.modules = i % (1 << LH_RECOMPUTE_MODULES);
        if (!has_modules(&tiny))
            ck_assert(!prove(&tiny));
        else if (take_all() || test_takes_of(i, 3))
            ck_assert(prove(&tiny));
        proven += has_modules(&tiny);
    }
    ck_assert_uint_ge(proven, 50);
}
END_TEST

/* Layers by every method: the numbers up to the layers of a chunk are proven, the next is not. */
START_TEST(layers_are_proven)
{
    for (uint32_t i = 0; i < 96; i++) {
        TinyStep tiny = recomputed_step(scramble(i) / 8);
        const uint32_t most = tiny.layers / tiny.stages / tiny.chunks;

        tiny.checkpoint = LH_CHECKPOINT_LAYER;
        tiny.recompute.method = (LhRecomputeMethod)(i % LH_RECOMPUTE_METHODS);
        tiny.recompute.layers = 1 + i / LH_RECOMPUTE_METHODS % most;
        ck_assert((!take_all() && !test_takes_of(i / LH_RECOMPUTE_METHODS, 2)) || prove(&tiny));
        tiny.recompute.layers = most + 1;
        ck_assert(!prove(&tiny));
    }
}
END_TEST

START_TEST(models_are_refused)
{
    const LhModelWeights latent = { .attention_parameters = 1000 };
    const LhModelWeights all_shared = { .shared_experts = 2 };
    const LhModelWeights narrow = { .dense_layers = 1, .dense_ffn_hidden_size = 66 };

    check_refusal(&(TinyStep){ 0 }, &latent,
                  "tiny has latent attention, which steps do not support");
    check_refusal(
        &(TinyStep){ .experts = 4 }, &all_shared,
        "of 2 experts per token 2 are shared, which leaves none for the router to choose");
    check_refusal(&(TinyStep){ .experts = 4, .tensor = 4 }, &narrow,
                  "the width of the dense layers' MLP, 66, must be a multiple of the "
                  "tensor-parallel size, 4; nearest legal tensor-parallel sizes: 2");
}
END_TEST

/* Damage to the declaration of a slot. */
typedef enum { OTHER_DTYPE, HALF_A_PART, OTHER_KIND, NO_LAST_PART, DAMAGES } Damage;

static void
damage(LhProgram *program, uint32_t index, Damage how)
{
    LhSlot *slot = &program->slots[index];

    if (how == OTHER_DTYPE)
        slot->dtype = slot->dtype == LH_DTYPE_BF16 ? LH_DTYPE_FP16 : LH_DTYPE_BF16;
    else if (how == HALF_A_PART)
        slot->part_bytes /= 2;
    else if (how == OTHER_KIND)
        slot->kind = slot->kind == LH_TENSOR_HIDDEN ? LH_TENSOR_WEIGHT : LH_TENSOR_HIDDEN;
    if (how != NO_LAST_PART)
        return;
    slot->parts--;
    while (++index < program->slots_count)
        program->slots[index].first_cell--;
}

/* Checks that the form of single calls is valid exactly if the whole program's is; returns
 * whether it is. */
static bool
forms_agree(const LhProgram *program, const char *what)
{
    g_autoptr(LhVerdict) verdict = lh_verify(program);
    g_autoptr(GError) error = NULL;
    const bool malformed =
        verdict->findings_total > 0 &&
        g_array_index(verdict->findings, LhFinding, 0).kind == LH_FINDING_MALFORMED;

    ck_assert_msg(lh_verify_step_form(program, &error) == !malformed, "%s: %s; %s", what,
                  malformed ? g_array_index(verdict->findings, LhFinding, 0).message
                            : "well-formed",
                  error != NULL ? error->message : "well-formed");
    return malformed;
}

/* Steps of sim, compare and plan are well-formed: building a step checks its form, which detects
 * every changed slot that the full proof detects. */
START_TEST(malformed_steps_are_refused)
{
    static const TinyStep steps[] = {
        { .schedule = "zigzag", .tensor = 2, .context = 2, .data = 2, .shard = LH_SHARD_FSDP },
        { .schedule = "lasp2", .context = 2, .linear = true, .gate = true, .experts = 4 },
        { .schedule = "ring", .stages = 2, .data = 2, .layers = 4, .tied = true, .window = 5 },
    };
    unsigned malformed = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(steps) * DAMAGES; i++) {
        TinyStep tiny = steps[i / DAMAGES];
        uint32_t slots = 1;

        tiny.micro_batches = 2;
        tiny.dtype = (LhDtype)(i % 3);
        tiny.behaviour = behaviour_of(scramble(i));
        for (uint32_t slot = 0; slot < slots; slot++) {
            g_autoptr(LhProgram) program = tiny_step(&tiny, NULL);
            const LhSlot *s = &program->slots[slot];

            slots = program->slots_count;
            if (!test_takes_of(slot + i, 7) || s->parts < 2 || s->part_bytes < 8)
                continue;
            damage(program, slot, (Damage)(i % DAMAGES));
            malformed += forms_agree(program, s->name);
        }
    }
    ck_assert_uint_gt(malformed, 20);
}
END_TEST

LH_TEST_MAIN("verify_step", sizes_are_proven, pipelines_are_proven, variants_are_proven,
             behaviours_are_proven, schedules_are_proven, models_are_proven,
             shared_heads_are_proven, patterns_are_proven, experts_are_proven, tiles_are_proven,
             modules_are_proven, layers_are_proven, packs_are_proven,
             packs_that_are_exchanged_are_found, numbers_of_packs_are_checked, adapters_are_proven,
             impossible_adapters_are_refused, models_are_refused, malformed_steps_are_refused)
