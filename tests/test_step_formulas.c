/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training steps against figures worked out by hand: programs, closed forms and the simulator.
 */
#include "compare/step_plan.h"
#include "model/model_file.h"
#include "model/parameters.h"
#include "program/live.h"
#include "program/work.h"
#include "run_tests.h"
#include "sim/cost/cost.h"
#include "sim_world.h"
#include "step/formulas.h"
#include "steps.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* ---- models ---- */

static LhProgram *
step_of(const LhModel *model, const LhStepParams *like)
{
    const bool linear = lh_model_count(model, LH_LAYER_LINEAR) > 0;
    LhStepParams p = *like;
    g_autoptr(GError) error = NULL;
    LhProgram *program;

    p.model = model;
    p.schedule[LH_LAYER_SOFTMAX] = lh_schedule_find("zigzag", NULL);
    p.schedule[LH_LAYER_LINEAR] = lh_schedule_find("lasp", NULL);
    p.module.attention.batch = 1;
    p.module.attention.dtype = LH_DTYPE_BF16;
    p.module.attention.decay = linear ? 0.99 : 0;
    p.module.mask.causal = true;
    program = lh_step_new(&p, &error);
    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    return program;
}

static LhModel *
load(const char *name)
{
    g_autoptr(GError) error = NULL;
    LhModel *model = lh_model_load(name, &error);

    ck_assert_msg(model != NULL, "%s", error != NULL ? error->message : "");
    return model;
}

/* Flops of a rank's ops. */
static void
count_flops(const LhProgram *program, uint32_t rank, LhWide *dense, LhWide *attention)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            *dense += lh_op_dense_flops(&buffer.ops[i]);
            *attention += lh_op_flops(&buffer.ops[i]);
        }
    }
    lh_op_buffer_clear(&buffer);
}

#define NEAR(a, b, share)                                                                          \
    ck_assert_msg((double)(a) <= (double)(b) * (1 + (share)) &&                                    \
                      (double)(a) >= (double)(b) * (1 - (share)),                                  \
                  "%g is not within %g of %g", (double)(a), (double)(share), (double)(b))

/* Checks the flops of a model on this number of tensor- and context-parallel ranks. */
static void
check_flops(const char *name, uint32_t tensor, uint32_t context)
{
    g_autoptr(LhModel) model = load(name);
    const LhStepParams like = { .module = { .attention.seq_length = 8192, .ranks = context },
                                .tensor_parallel = tensor,
                                .data_parallel = 1,
                                .micro_batches = 2 };
    g_autoptr(LhProgram) program = step_of(model, &like);
    const uint64_t tokens = lh_step_tokens(lh_step_params(program));
    const LhWide parameters = (LhWide)lh_model_active_parameters(model) -
                              (LhWide)(model->vocab_size * model->hidden_size);
    const LhStepFlops flops = lh_step_flops(program);
    LhWide dense = 0, attention = 0;

    for (uint32_t rank = 0; rank < tensor * context; rank++)
        count_flops(program, rank, &dense, &attention);
    ck_assert_uint_eq(tokens, 2 * 8192);
    ck_assert(dense == flops.dense && attention == flops.attention);
    NEAR(dense, 6 * parameters * tokens, 0.01);
    if (lh_model_count(model, LH_LAYER_LINEAR) > 0) /* two products of d x d per token and head */
        NEAR(flops.model,
             6 * parameters * tokens +
                 (LhWide)12 * model->num_layers * model->hidden_size * model->kv_channels * tokens,
             0.01);
    else /* two products of d per causal pair and head: half of all pairs */
        NEAR(flops.model,
             6 * parameters * tokens + (LhWide)12 * model->num_layers * model->num_attention_heads *
                                           model->kv_channels * 4096 * tokens,
             0.01);
}

START_TEST(flops_are_six_times_parameters_and_attention)
{
    check_flops("llama-7b", 1, 2);
    check_flops("llama-7b", 4, 2);
    check_flops("llama-3-8b", 2, 4);
    check_flops("tnl-1b", 1, 4);
    check_flops("tnl-1b", 2, 2);
}
END_TEST

/* Packs of 8, of 3 and 5, of 1, 1 and 6 and of 8 tokens: causal pairs are 36, 21, 23 and 36, in a
 * window of 2 they are 15, 14, 13 and 15. Ranks of data parallelism compute the pairs of their own
 * packs, and the whole step all of them. */
START_TEST(packs_count_their_own_pairs)
{
    static const uint64_t ends[][3] = { { 8 }, { 3, 8 }, { 1, 2, 8 }, { 8 } };
    static const LhDocumentPack packs[] = {
        { ends[0], 1 }, { ends[1], 2 }, { ends[2], 3 }, { ends[3], 1 }
    };
    static const uint64_t pairs[] = { 36, 21, 23, 36 }, in_window[] = { 15, 14, 13, 15 };

    for (uint32_t window = 0; window <= 2; window += 2) {
        /* Two layers, with the window the second one has it. */
        const TinyStep tiny = { .schedule = "zigzag", .window = window };
        g_autoptr(LhModel) model = tiny_model(&tiny);
        const LhStepParams like = {
            .module = { .attention.seq_length = 8, .ranks = 1, .mask.causal = true },
            .packs = packs,
            .packs_count = 4,
            .window = window,
            .tensor_parallel = 2,
            .data_parallel = 2,
            .micro_batches = 2,
        };
        g_autoptr(LhProgram) program = step_of(model, &like);
        const LhStepFlops flops = lh_step_flops(program);
        const LhStepParameters parameters = lh_step_parameters(program);
        const uint64_t width = model->num_attention_heads * model->kv_channels;
        uint64_t all = 0;

        for (uint32_t data = 0; data < 2; data++) {
            LhWide dense = 0, attention = 0;
            uint64_t of_rank = 0, stated = 0;

            for (uint32_t i = 2 * data; i < 2 * data + 2; i++)
                of_rank += pairs[i] + (window > 0 ? in_window[i] : pairs[i]);
            count_flops(program, 2 * data, &dense, &attention);
            ck_assert(lh_step_attention_flops(program, 2 * data, &stated));
            ck_assert_uint_eq(stated, of_rank * (4 + 10) * width / 2);
            ck_assert(attention == stated);
            all += of_rank;
        }
        ck_assert(flops.model ==
                  6 * (LhWide)lh_step_parameters(program).active * 32 + (LhWide)12 * all * width);
        ck_assert_uint_eq(program->symmetry.shifts, 1);
        /* the MFU counts norms, too */
        ck_assert_double_eq_tol(lh_step_model_flops(lh_step_params(program), model),
                                (double)(flops.model + (LhWide)6 * 32 * parameters.norms), 1);
    }
}
END_TEST

/* The packs of the test above: the largest micro-batch has 36 of 29 pairs in the mean, the larger
 * rank 59 of 58. */
START_TEST(imbalance_is_that_of_pairs)
{
    static const uint64_t ends[][3] = { { 8 }, { 3, 8 }, { 1, 2, 8 }, { 8 } };
    static const LhDocumentPack packs[] = {
        { ends[0], 1 }, { ends[1], 2 }, { ends[2], 3 }, { ends[3], 1 }
    };
    g_autoptr(LhModel) model = tiny_model(&(TinyStep){ .schedule = "zigzag" });
    const LhStepParams p = {
        .model = model,
        .module = { .attention.seq_length = 8, .ranks = 1, .mask.causal = true },
        .packs = packs,
        .packs_count = 4,
        .data_parallel = 2,
        .micro_batches = 2,
    };
    const LhStepPackImbalance imbalance = lh_step_pack_imbalance(&p);

    ck_assert_double_eq_tol(imbalance.micro_batches, 36.0 / 29, 1e-9);
    ck_assert_double_eq_tol(imbalance.ranks, 59.0 / 58, 1e-9);
}
END_TEST

/* Every tensor-parallel rank computes the whole router for all rows: 3 products. */
static void
check_experts(const char *name, uint32_t tensor, uint32_t context, uint64_t parameters,
              uint64_t active)
{
    g_autoptr(LhModel) model = load(name);
    const LhStepParams like = { .module = { .attention.seq_length = 8192, .ranks = context },
                                .tensor_parallel = tensor,
                                .data_parallel = 1,
                                .micro_batches = 1 };
    g_autoptr(LhProgram) program = step_of(model, &like);
    const LhStepParameters p = lh_step_parameters(program);
    const uint64_t tokens = lh_step_tokens(lh_step_params(program));
    const uint64_t mixtures = model->num_layers - model->weights.dense_layers;
    const uint64_t routers =
        mixtures * model->hidden_size * (model->num_experts - model->weights.shared_experts);
    LhWide dense = 0, attention = 0;

    for (uint32_t rank = 0; rank < tensor * context; rank++)
        count_flops(program, rank, &dense, &attention);
    ck_assert_uint_eq(p.matrices + p.norms + p.embedding, parameters);
    ck_assert_uint_eq(p.active + p.norms + p.embedding, active);
    ck_assert(dense == 6 * (LhWide)tokens * (p.active + (tensor - 1) * routers));
}

/* Published for Mixtral 8x7B: 46.7 and 12.9 billion parameters. Of the model with dense layers,
 * by hand: the embedding and the head 2 x 1000 x 64; attention 4 x 64^2 and two norms of 64 in
 * each of 5 layers, and a final norm; 2 MLPs of 3 x 64 x 96; 3 routers of 64 x 6 and 6 (2)
 * routed experts and 2 shared ones of 3 x 64 x 32. */
START_TEST(experts_count_as_parameters_and_flops)
{
    static const char text[] =
        "{ \"schema\": \"longhaul.model/1\", \"name\": \"few\", \"source\": \"none\", "
        "\"num_layers\": 5, \"hidden_size\": 64, \"num_attention_heads\": 4, "
        "\"ffn_hidden_size\": 32, \"gated_mlp\": true, \"num_experts\": 8, "
        "\"experts_per_token\": 4, \"shared_experts\": 2, \"dense_layers\": 2, "
        "\"dense_ffn_hidden_size\": 96, \"vocab_size\": 1000 }";
    const uint64_t others = 2 * 1000 * 64 + 5 * (4 * 64 * 64 + 2 * 64) + 64 + 2 * 3 * 64 * 96;
    const uint64_t expert = 3 * 64 * 32;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "longhaul-few-XXXXXX", NULL);
    const int file = g_mkstemp(path);

    check_flops("mixtral-8x7b", 1, 2);
    check_experts("mixtral-8x7b", 1, 4, UINT64_C(46702792704), UINT64_C(12879925248));
    check_experts("mixtral-8x7b", 4, 2, UINT64_C(46702792704), UINT64_C(12879925248));
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
    check_experts(path, 2, 2, others + 3 * (64 * 6 + 8 * expert),
                  others + 3 * (64 * 6 + 4 * expert));
    g_unlink(path);
}
END_TEST

/* Layers with experts alternate with layers with one MLP, as in Llama 4 Maverick. */
static const char by_turns[] =
    "{ \"model_type\": \"llama4_text\", \"hidden_size\": 64, \"num_hidden_layers\": 6, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16, "
    "\"intermediate_size\": 96, \"intermediate_size_mlp\": 160, \"num_local_experts\": 6, "
    "\"num_experts_per_tok\": 1, \"interleave_moe_layer_step\": 2, \"vocab_size\": 1000, "
    "\"attention_chunk_size\": 8192, \"tie_word_embeddings\": false }";

/*
 * By hand: attention has q and o of 64 x 64, k and v of 64 x 32; three layers have an MLP of 3 x 64
 * x 160, three a router of 64 x 6, 6 (1) routed experts and a shared one of 3 x 64 x 96; the
 * embedding and the head are 1000 x 64. A product has 2 flops per token and weight, three times in
 * a step; attention has, per pair of tokens, 2 products of 16 forward and 5 backward, in 4 heads
 * and 6 layers.
 */
static void
check_turns(const LhModel *model, uint32_t tensor, uint32_t context)
{
    enum { TOKENS = 4096, EXPERT = 3 * 64 * 96 };
    const uint64_t attention = 6 * (2 * 64 * 64 + 2 * 64 * 32), dense = 3 * (3 * 64 * 160);
    const uint64_t routers = 3 * 64 * 6, head = 1000 * 64, norms = 13 * 64;
    const LhStepParams like = { .module = { .attention.seq_length = TOKENS, .ranks = context },
                                .tensor_parallel = tensor,
                                .data_parallel = 1,
                                .micro_batches = 1 };
    g_autoptr(LhProgram) program = step_of(model, &like);
    const LhStepParameters p = lh_step_parameters(program);
    const LhWide pairs = (LhWide)TOKENS * (TOKENS + 1) / 2;
    LhWide products = 0, scores = 0, weights = 0;

    for (uint32_t rank = 0; rank < tensor * context; rank++) {
        count_flops(program, rank, &products, &scores);
        weights += lh_step_state_bytes(program, rank).weights;
    }
    ck_assert_uint_eq(p.matrices, attention + dense + routers + 3 * 7 * EXPERT + head);
    ck_assert_uint_eq(p.active, attention + dense + routers + 3 * 2 * EXPERT + head);
    ck_assert_uint_eq(p.norms, norms);
    ck_assert_uint_eq(p.embedding, head);
    ck_assert(products == (LhWide)6 * TOKENS * (p.active + (tensor - 1) * routers));
    ck_assert(scores == 6 * pairs * 4 * (2 + 5) * 2 * 16);
    /* bf16; norms and routers are replicated on tensor-parallel ranks, everything on the others */
    ck_assert(weights ==
              (LhWide)2 * context * (p.matrices + head + norms + (tensor - 1) * (routers + norms)));
}

START_TEST(layers_by_turns_are_summed)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhModel) model = lh_model_parse("config.json", by_turns, strlen(by_turns), &error);

    ck_assert_msg(model != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(lh_model_dense(model), 3);
    check_turns(model, 1, 1);
    check_turns(model, 1, 2);
    check_turns(model, 2, 1);
    check_turns(model, 2, 2);
}
END_TEST

/* Permanent bytes per parameter of @program, by category. */
static void
check_states(const char *name, LhShard shard, uint32_t ranks, double weights, double gradients,
             double optimizer)
{
    g_autoptr(LhModel) model = load(name);
    const LhStepParams like = {
        .module = { .attention.seq_length = 1024 * ranks, .ranks = ranks },
        .tensor_parallel = 1,
        .data_parallel = 1,
        .micro_batches = 2,
        .shard = shard,
        .behaviour = { .gradients_stay = true, .reduce_each = true, .reshard = true },
    };
    g_autoptr(LhProgram) program = step_of(model, &like);
    const double parameters = (double)lh_model_parameters(model);
    const LhStepStateBytes bytes = lh_step_state_bytes(program, 0);
    LhLive live;

    lh_live_init(&live, program, 0);
    NEAR(bytes.weights, weights * parameters, 1e-3);
    NEAR(bytes.gradients, gradients * parameters, 1e-3);
    NEAR(bytes.optimizer, optimizer * parameters, 1e-3);
    ck_assert_uint_eq(live.by_category[LH_CATEGORY_WEIGHTS], bytes.weights);
    ck_assert_uint_eq(live.by_category[LH_CATEGORY_GRADIENTS], bytes.gradients);
    /* Moments, fp32 weights, and a step counter per weight. */
    NEAR(live.by_category[LH_CATEGORY_OPTIMIZER], bytes.optimizer, 1e-6);
}

/* ZeRO's table: 16, 4 + 12/D, 2 + 14/D, 16/D bytes per parameter. */
START_TEST(states_are_those_of_zero)
{
    for (uint32_t d = 2; d <= 8; d *= 2) {
        check_states("llama-7b", LH_SHARD_DDP, d, 2, 2, 12);
        check_states("llama-7b", LH_SHARD_ZERO1, d, 2, 2, 12.0 / d);
        check_states("llama-7b", LH_SHARD_ZERO2, d, 2, 2.0 / d, 12.0 / d);
        check_states("llama-7b", LH_SHARD_FSDP, d, 2.0 / d, 2.0 / d, 12.0 / d);
    }
    check_states("llama-7b", LH_SHARD_DDP, 1, 2, 2, 12);
    check_states("mixtral-8x7b", LH_SHARD_ZERO1, 4, 2, 2, 12.0 / 4);
    check_states("mixtral-8x7b", LH_SHARD_FSDP, 8, 2.0 / 8, 2.0 / 8, 12.0 / 8);
}
END_TEST

/* ---- time ---- */

static void
step_world(World *w, const TinyStep *tiny)
{
    g_autoptr(GError) error = NULL;
    LhProgram *program = tiny_step(tiny, &error);

    ck_assert_msg(program != NULL, "%s", error != NULL ? error->message : "");
    world_init(w, "dfa-2node", program);
    w->device.kernel_launch_ps = 0;
    w->device.stream_sync_ps = 0;
}

static LhTime
makespan(World *w)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSimResult) result = world_try(w, &error);

    ck_assert_msg(result != NULL, "%s", error != NULL ? error->message : "");
    return result->makespan_ps;
}

static LhTime
sum_of_kernels(const World *w)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    LhTime sum = 0;
    LhCost cost;

    lh_cost_init(&cost, LH_COST_DEVICE, &w->device);
    lh_cursor_init(&cursor, w->program, 0);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            double occupancy;

            if (buffer.ops[i].kind == LH_OP_COMPUTE)
                sum += lh_cost_compute(&cost, w->program, &buffer.ops[i], &occupancy);
        }
    }
    lh_op_buffer_clear(&buffer);
    lh_cost_clear(&cost);
    return sum;
}

START_TEST(one_rank_takes_the_sum_of_its_kernels)
{
    for (unsigned checkpoint = 0; checkpoint < LH_CHECKPOINTS; checkpoint++) {
        World w;

        step_world(&w, &(TinyStep){ .schedule = "ring",
                                    .checkpoint = (LhCheckpoint)checkpoint,
                                    .micro_batches = 3,
                                    .behaviour.clip = 1 });
        const LhTime sum = sum_of_kernels(&w);

        ck_assert_int_gt(sum, 0);
        ck_assert_int_eq(makespan(&w), sum);
        world_clear(&w);
    }
}
END_TEST

static LhTime
time_of_layers(uint32_t layers, uint32_t tensor, uint32_t context)
{
    World w;

    step_world(&w, &(TinyStep){ .schedule = "zigzag",
                                .layers = layers,
                                .tensor = tensor,
                                .context = context,
                                .checkpoint = LH_CHECKPOINT_LAYER });
    const LhTime time = makespan(&w);

    world_clear(&w);
    return time;
}

START_TEST(twice_the_layers_take_twice_the_time)
{
    const LhTime two = time_of_layers(2, 1, 1), four = time_of_layers(4, 1, 1);

    ck_assert_int_eq(time_of_layers(8, 1, 1) - four, 2 * (four - two));
    const LhTime more = time_of_layers(4, 2, 4), most = time_of_layers(8, 2, 4);

    NEAR(time_of_layers(16, 2, 4) - most, 2 * (most - more), 0.01);
}
END_TEST

/* Forward attention of the first layer: from the start of its first op to the end of its last. */
typedef struct {
    LhCost cost;
    const LhProgram *program;
    LhTime first, last;
} Attention;

static LhTime
attention_alone(void *data, uint32_t rank, const LhOp *op)
{
    Attention *a = data;
    double occupancy;

    (void)rank;
    return op->module > 0 ? lh_cost_compute(&a->cost, a->program, op, &occupancy) : 0;
}

static void
note_attention(void *data, const LhTimelineRecord *record)
{
    Attention *a = data;

    if (record->module != 1 || record->layer != 0)
        return;
    a->first = MIN(a->first, record->start_ps);
    a->last = MAX(a->last, record->end_ps);
}

/* With all other ops free, attention in a step takes as long as on its own. */
static void
check_attention(const char *schedule)
{
    World w;

    step_world(&w, &(TinyStep){ .schedule = schedule, .context = 4, .tokens = 4096 });
    Attention attention = { .program = w.program, .first = INT64_MAX };
    World alone;
    LhProgram *module;
    LhTime took;

    lh_cost_init(&attention.cost, LH_COST_DEVICE, &w.device);
    w.params.compute_time = attention_alone;
    w.params.compute_time_data = &attention;
    w.params.timeline = note_attention;
    w.params.timeline_data = &attention;
    makespan(&w);
    took = attention.last - attention.first;
    module = lh_program_new(lh_schedule_find(schedule, NULL), &w.program->modules[0]->params, NULL);
    ck_assert_ptr_nonnull(module);
    world_init(&alone, "dfa-2node", module);
    alone.device.kernel_launch_ps = 0;
    alone.device.stream_sync_ps = 0;

    ck_assert_int_gt(took, 0);
    ck_assert_int_eq(makespan(&alone), took);
    lh_cost_clear(&attention.cost);
    world_clear(&alone);
    world_clear(&w);
}

START_TEST(attention_takes_what_it_takes_alone)
{
    check_attention("ring");
    check_attention("zigzag");
    check_attention("ulysses");
    check_attention("dfa-balanced");
}
END_TEST

/* ---- unfused kernels ---- */

/* Peak memory of a rank, saved for backward and total, and the traffic of its norms. */
static void
count_unfused(const LhModel *model, const LhStepParams *like, uint64_t *saved_bytes,
              uint64_t *peak_bytes, uint64_t *moved_bytes)
{
    g_autoptr(LhProgram) program = step_of(model, like);
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    LhLive live;

    lh_live_init(&live, program, 0);
    lh_live_walk(&live, program, 0);
    *saved_bytes = live.peak_by_category[LH_CATEGORY_SAVED];
    *peak_bytes = live.peak_bytes;
    *moved_bytes = 0;
    lh_cursor_init(&cursor, program, 0);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];
            const LhKernelArgs *args = &op->compute.args;

            if (op->kind == LH_OP_COMPUTE && (op->compute.kernel == LH_KERNEL_ID_rms_norm ||
                                              op->compute.kernel == LH_KERNEL_ID_rms_norm_bwd))
                *moved_bytes += args->rows.rows * args->rows.width * args->rows.traffic;
        }
    }
    lh_op_buffer_clear(&buffer);
}

/* Unfused kernels write and read ten bytes per element of every layer, and save them until the
 * layer's backward pass, which reads them and moves as many bytes of gradients. With
 * recomputation they are written and read again, and saved for one layer at a time. */
START_TEST(what_is_not_fused_is_kept)
{
    const uint64_t layers = 24, hidden = 1024, rows = 2048, written = 10 * rows * hidden;
    g_autoptr(LhModel) model = load("tnl-385m");

    for (unsigned again = 0; again < 2; again++) {
        LhStepParams like = { .module = { .attention.seq_length = 2 * rows, .ranks = 2 },
                              .tensor_parallel = 1,
                              .data_parallel = 1,
                              .micro_batches = 1,
                              .checkpoint = again ? LH_CHECKPOINT_LAYER : LH_CHECKPOINT_NONE,
                              .behaviour.norm_traffic = 4 };
        uint64_t fused_saved, fused_peak, fused_moved, saved, peak, moved;

        count_unfused(model, &like, &fused_saved, &fused_peak, &fused_moved);
        like.behaviour.unfused_bytes = 10;
        count_unfused(model, &like, &saved, &peak, &moved);
        ck_assert_uint_eq(moved - fused_moved, layers * (again ? 8 : 6) * written);
        if (!again)
            ck_assert_uint_eq(saved - fused_saved, layers * written);
        ck_assert_uint_ge(peak - fused_peak, written / 2);
        ck_assert_uint_le(peak - fused_peak, (again ? 1 : layers) * written);
    }
}
END_TEST

/* ---- recomputation ---- */

#define EACH(module) LH_RECOMPUTE_BIT(module)
#define TOKENS UINT64_C(2048)

/* Flops of products, most bytes that are saved for the backward pass, and recomputed layers as
 * bits, of one rank. */
typedef struct {
    uint64_t flops, saved_bytes, layers;
} Recomputed;

static uint64_t
recomputed_layers(const LhProgram *program)
{
    LhOpBuffer buffer = { 0 };
    uint64_t layers = 0;
    LhCursor cursor;

    lh_cursor_init(&cursor, program, 0);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            if (buffer.ops[i].phase == LH_PHASE_RECOMPUTE)
                layers |= UINT64_C(1) << buffer.ops[i].layer;
        }
    }
    lh_op_buffer_clear(&buffer);
    return layers;
}

static Recomputed
recompute(const LhModel *model, LhCheckpoint checkpoint, LhRecompute how)
{
    const LhStepParams like = { .module = { .attention.seq_length = TOKENS, .ranks = 1 },
                                .tensor_parallel = 1,
                                .data_parallel = 1,
                                .micro_batches = 1,
                                .checkpoint = checkpoint,
                                .recompute = how };
    g_autoptr(LhProgram) program = step_of(model, &like);
    LhWide dense = 0, attention = 0;
    LhLive live;

    count_flops(program, 0, &dense, &attention);
    lh_live_init(&live, program, 0);
    lh_live_walk(&live, program, 0);
    return (Recomputed){ (uint64_t)dense, live.most_saved, recomputed_layers(program) };
}

/* Checks what a set of modules computes more than none, per token, and saves less, per token in
 * bf16. */
static void
check_modules(const LhModel *model, uint32_t modules, uint64_t flops, uint64_t elements)
{
    const Recomputed none = recompute(model, LH_CHECKPOINT_NONE, (LhRecompute){ 0 });
    const Recomputed some =
        recompute(model, LH_CHECKPOINT_SELECTIVE, (LhRecompute){ .modules = modules });

    ck_assert_uint_eq(some.flops - none.flops, TOKENS * flops);
    ck_assert_uint_eq(none.saved_bytes - some.saved_bytes, TOKENS * 2 * elements);
}

/* By hand, of a layer with width h: norms write 2 h elements; a gated MLP of width f keeps 3 f and
 * computes 3 products of h x f; with k choices of experts of width e, their activation has k e. */
START_TEST(modules_free_what_they_write)
{
    static const char text[] =
        "{ \"schema\": \"longhaul.model/1\", \"name\": \"few\", \"source\": \"none\", "
        "\"num_layers\": 5, \"hidden_size\": 64, \"num_attention_heads\": 4, "
        "\"ffn_hidden_size\": 32, \"gated_mlp\": true, \"num_experts\": 8, "
        "\"experts_per_token\": 4, \"shared_experts\": 2, \"dense_layers\": 2, "
        "\"dense_ffn_hidden_size\": 96, \"vocab_size\": 1000 }";
    enum { LAYERS = 5, DENSE = 2, H = 64, F = 96, E = 32, SHARED = 2, CHOICES = 2, ROUTED = 6 };
    const uint64_t shared = (LAYERS - DENSE) * SHARED * 2 * 3 * H * E;
    const uint64_t routed = (LAYERS - DENSE) * (CHOICES * 2 * 3 * H * E + 2 * H * ROUTED);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhModel) model = lh_model_parse("few.json", text, strlen(text), &error);

    ck_assert_msg(model != NULL, "%s", error != NULL ? error->message : "");
    check_modules(model, EACH(LAYERNORM), 0, LAYERS * 2 * H);
    check_modules(model, EACH(MLP), DENSE * 2 * 3 * H * F, DENSE * 3 * F);
    check_modules(model, EACH(MOE_ACT), 0, (LAYERS - DENSE) * CHOICES * E);
    check_modules(model, EACH(SHARED_EXPERTS), shared, (LAYERS - DENSE) * SHARED * 3 * E);
    check_modules(model, EACH(LAYERNORM) | EACH(MLP) | EACH(SHARED_EXPERTS) | EACH(MOE_ACT),
                  shared + DENSE * 2 * 3 * H * F,
                  LAYERS * 2 * H + DENSE * 3 * F +
                      (LAYERS - DENSE) * (SHARED * 3 * E + CHOICES * E));
    ck_assert_uint_eq(
        recompute(model, LH_CHECKPOINT_SELECTIVE, (LhRecompute){ .modules = EACH(MOE) }).flops -
            recompute(model, LH_CHECKPOINT_NONE, (LhRecompute){ 0 }).flops,
        TOKENS * (shared + routed));
}
END_TEST

/* Of six equal layers, two are recomputed by `block` 2 and `every` 3; `uniform` 2 recomputes all
 * and keeps three inputs. */
START_TEST(layers_are_recomputed_by_number)
{
    g_autoptr(LhModel) model = load("tnl-385m");
    const uint64_t input = TOKENS * 2 * model->hidden_size;

    model->num_layers = 6;
    const Recomputed none = recompute(model, LH_CHECKPOINT_NONE, (LhRecompute){ 0 });
    const Recomputed all = recompute(model, LH_CHECKPOINT_LAYER, (LhRecompute){ 0 });
    const Recomputed block =
        recompute(model, LH_CHECKPOINT_LAYER, (LhRecompute){ 0, 2, LH_RECOMPUTE_BLOCK });
    const Recomputed every =
        recompute(model, LH_CHECKPOINT_LAYER, (LhRecompute){ 0, 3, LH_RECOMPUTE_EVERY });
    const Recomputed uniform =
        recompute(model, LH_CHECKPOINT_LAYER, (LhRecompute){ 0, 2, LH_RECOMPUTE_UNIFORM });

    ck_assert_uint_eq(3 * (block.flops - none.flops), all.flops - none.flops);
    ck_assert_uint_eq(every.flops, block.flops);
    ck_assert_uint_eq(every.saved_bytes, block.saved_bytes);
    ck_assert_uint_eq(3 * (none.saved_bytes - block.saved_bytes),
                      none.saved_bytes - all.saved_bytes);
    ck_assert_uint_eq(uniform.flops, all.flops);
    ck_assert_uint_eq(block.layers, 1 << 0 | 1 << 1);
    ck_assert_uint_eq(every.layers, 1 << 2 | 1 << 5);
    ck_assert_uint_eq(uniform.layers, (1 << 6) - 1);
    ck_assert_uint_eq(all.saved_bytes - uniform.saved_bytes, 3 * input);
}
END_TEST

/*
 * By hand for Llama 7B, width 4096 and 11008, and rank 8: in each of 32 layers A and B have 8 times
 * 4096 + 3 x 4096 numbers for q, k and v, 2 x 4096 for the output, 4096 + 2 x 11008 and 11008 +
 * 4096 for the MLP. A frozen weight has two products, an adapter three; what tensor-parallel ranks
 * hold whole they multiply each.
 */
static void
check_adapters(uint32_t targets, uint64_t ends, uint32_t tensor, uint64_t whole)
{
    g_autoptr(LhModel) model = load("llama-7b");
    const LhStepParams like = { .module = { .attention.seq_length = 4096, .ranks = 2 },
                                .tensor_parallel = tensor,
                                .data_parallel = 1,
                                .micro_batches = 1,
                                .lora_rank = 8,
                                .lora_targets = targets };
    g_autoptr(LhProgram) program = step_of(model, &like);
    const LhStepParameters p = lh_step_parameters(program);
    const LhStepFlops flops = lh_step_flops(program);
    const LhStepStateBytes bytes = lh_step_state_bytes(program, 0);
    const uint64_t adapters = 32 * 8 * ends, copies = 32 * 8 * whole * (tensor - 1);
    LhWide dense = 0, attention = 0;

    for (uint32_t rank = 0; rank < 2 * tensor; rank++)
        count_flops(program, rank, &dense, &attention);
    ck_assert_uint_eq(p.adapters, adapters);
    ck_assert(dense == (LhWide)4096 * (4 * p.active + 6 * (adapters + copies)));
    ck_assert(flops.dense == dense);
    ck_assert(flops.model < dense + attention);
    NEAR(flops.model, lh_step_model_flops(lh_step_params(program), model), 1e-4);
    ck_assert_uint_eq(bytes.optimizer * tensor, 12 * (adapters + copies));
}

START_TEST(adapters_count_as_parameters_and_flops)
{
    const uint64_t qkv = 4 * 4096, proj = 2 * 4096, fc1 = 4096 + 2 * 11008, fc2 = 11008 + 4096;

    check_adapters(LH_LORA_ALL, qkv + proj + fc1 + fc2, 1, 0);
    check_adapters(LH_LORA_ALL, qkv + proj + fc1 + fc2, 2, 4 * 4096);
    check_adapters(LH_LORA_QKV, qkv, 4, 4096);
    check_adapters(LH_LORA_PROJ | LH_LORA_FC2, proj + fc2, 2, 2 * 4096);
}
END_TEST

LH_TEST_MAIN("step_formulas", adapters_count_as_parameters_and_flops,
             flops_are_six_times_parameters_and_attention, packs_count_their_own_pairs,
             imbalance_is_that_of_pairs, experts_count_as_parameters_and_flops,
             layers_by_turns_are_summed, states_are_those_of_zero,
             one_rank_takes_the_sum_of_its_kernels, twice_the_layers_take_twice_the_time,
             attention_takes_what_it_takes_alone, what_is_not_fused_is_kept,
             modules_free_what_they_write, layers_are_recomputed_by_number)
