/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/step/setup_step.h"

#include "base/error.h"
#include "scenario/schedule_pairs.h"
#include "scenario/setup_params.h"
#include "scenario/step/setup_lora.h"
#include "scenario/step/setup_muon.h"
#include "scenario/step/setup_offload.h"
#include "scenario/step/setup_optimizer.h"
#include "scenario/step/setup_packs.h"
#include "scenario/step/setup_prefill.h"
#include "scenario/step/setup_recomputation.h"
#include "sched/common/heads.h"
#include "sched/pair.h"
#include "step/behaviour.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <string.h>

#define DEFAULT_FRAMEWORK "pytorch-fsdp"
#define DEFAULT_TENSOR_FRAMEWORK "megatron-lm"
#define CLIP 1.0           /* gradient clipping norm, as in common training scripts */
#define LEARNING_RATE 3e-4 /* does not affect time */

/* ---- sizes ---- */

/* "all" or a number. */
static bool
tensor_size(const LhScenario *s, uint32_t ranks, uint32_t *size, GError **error)
{
    const char *text = s->tensor_model_parallel_size;
    guint64 number;

    *size = 1;
    if (text == NULL)
        return true;
    *size = ranks;
    if (strcmp(text, "all") == 0)
        return true;
    if (!g_ascii_string_to_unsigned(text, 10, 1, LH_RANKS_MAX, &number, NULL))
        return lh_scenario_error(s, "tensor_model_parallel_size", error,
                                 "found \"%.20s\"; allowed: all, or 1 to %u", text, LH_RANKS_MAX);
    *size = (uint32_t)number;
    return true;
}

/* Rejects the @size of a field that does not divide @ranks; suggests sizes that do. */
static bool
refuse_cut(const LhScenario *s, const char *field, uint32_t ranks, uint64_t size, const char *what,
           GError **error)
{
    g_autofree char *near = NULL;
    uint32_t below, above;

    lh_divisors_near(ranks, (uint32_t)MIN(size, UINT32_MAX), ranks, &below, &above);
    near = lh_near_text(below, above);
    return lh_scenario_error(s, field, error,
                             "%u ranks cannot be cut into %" PRIu64 "%s; nearest legal numbers: %s",
                             ranks, size, what, near);
}

/* Rejects sizes of which tensor and context or data parallelism (@other) do not fit the ranks
 * together. Blames the tensor-parallel size or the other one, and suggests values for it with the
 * rest as given. */
static bool
refuse_groups_of(const LhScenario *s, const LhStepSizes *sizes, uint32_t ranks, uint64_t other,
                 bool context, GError **error)
{
    const char *stage = sizes->pipeline > 1 ? " of a pipeline stage" : "";
    const bool tensor = sizes->tensor > 1 && (ranks % sizes->tensor != 0 || ranks % other == 0);
    const uint64_t rest = tensor ? other : sizes->tensor;
    const uint32_t size = tensor ? sizes->tensor : (uint32_t)MIN(other, UINT32_MAX);
    g_autofree char *near = NULL;
    uint32_t below, above;

    if (rest > 0 && ranks % rest == 0) {
        lh_divisors_near(ranks / (uint32_t)rest, size, ranks, &below, &above);
        near = lh_near_text(below, above);
    }
    return lh_scenario_error(s,
                             tensor    ? "tensor_model_parallel_size"
                             : context ? "context_parallel_size"
                                       : "data_parallel_size",
                             error, "%u ranks%s cannot be cut into groups of %" PRIu64 "%s%s",
                             ranks, stage, sizes->tensor * other,
                             near != NULL ? "; nearest legal numbers: " : "",
                             near != NULL ? near : "");
}

bool
lh_setup_step_sizes(const LhScenario *s, uint32_t ranks, LhStepSizes *sizes, GError **error)
{
    const uint64_t data = MAX(s->data_parallel_size, 1);
    const uint64_t pipeline = MAX(s->pipeline_model_parallel_size, 1);
    uint64_t context = s->context_parallel_size, others;

    if (ranks % pipeline != 0)
        return refuse_cut(s, "pipeline_model_parallel_size", ranks, pipeline, " pipeline stages",
                          error);
    sizes->pipeline = (uint32_t)pipeline;
    ranks /= sizes->pipeline;
    if (!tensor_size(s, ranks, &sizes->tensor, error))
        return false;
    others = (uint64_t)sizes->tensor * (context != 0 ? context : data);
    if (ranks % others != 0)
        return refuse_groups_of(s, sizes, ranks, context != 0 ? context : data, context != 0,
                                error);
    if (context == 0)
        context = ranks / others;
    sizes->context = (uint32_t)context;
    sizes->data = (uint32_t)(ranks / (sizes->tensor * context));
    if (lh_scenario_has(s, "data_parallel_size") && sizes->data != data)
        return lh_scenario_error(s, "data_parallel_size", error,
                                 "tensor parallelism of %u x context parallelism of %" PRIu64
                                 " x data parallelism of %" PRIu64 " is not the %u ranks%s",
                                 sizes->tensor, context, data, ranks,
                                 pipeline > 1 ? " of a pipeline stage" : "");
    return true;
}

static bool
refuse_chunks(const LhScenario *s, const LhStepSizes *sizes, uint64_t layers, uint64_t of_chunk,
              GError **error)
{
    g_autofree char *near = NULL;
    uint32_t below, above;

    if (layers % sizes->pipeline == 0) {
        lh_divisors_near((uint32_t)(layers / sizes->pipeline), (uint32_t)MIN(of_chunk, UINT32_MAX),
                         UINT32_MAX, &below, &above);
        near = lh_near_text(below, above);
    }
    return lh_scenario_error(s, "num_layers_per_virtual_pipeline_stage", error,
                             "%" PRIu64 " layers on %u pipeline stages cannot be cut into "
                             "chunks of %" PRIu64 "%s%s",
                             layers, sizes->pipeline, of_chunk,
                             near != NULL ? "; nearest legal numbers: " : "",
                             near != NULL ? near : "");
}

/* Sets the pipeline: chunks per stage follow from the given layers per chunk. */
static bool
set_pipeline(const LhScenario *s, const LhStepSizes *sizes, LhStepParams *p, GError **error)
{
    const uint64_t layers = p->model->num_layers +
                            (s->account_for_embedding_in_pipeline_split ? 1 : 0) +
                            (s->account_for_loss_in_pipeline_split ? 1 : 0);
    const uint64_t of_chunk = s->num_layers_per_virtual_pipeline_stage;
    const uint64_t of_stage = layers / sizes->pipeline;

    p->pipeline_parallel = sizes->pipeline;
    p->pipeline_order = (LhPipelineOrder)MAX(s->pipeline_schedule, 0);
    p->chunks = 1;
    p->embedding_counts = s->account_for_embedding_in_pipeline_split;
    p->loss_counts = s->account_for_loss_in_pipeline_split;
    if (sizes->pipeline == 1 && (of_chunk != 0 || lh_scenario_has(s, "pipeline_schedule")))
        return lh_scenario_error(
            s, of_chunk != 0 ? "num_layers_per_virtual_pipeline_stage" : "pipeline_schedule", error,
            "this needs a pipeline: give --pipeline-model-parallel-size, too");
    if (of_chunk == 0)
        return true;
    if (layers % sizes->pipeline != 0 || of_stage % of_chunk != 0)
        return refuse_chunks(s, sizes, layers, of_chunk, error);
    p->chunks = (uint32_t)(of_stage / of_chunk);
    return true;
}

/* Sets the micro-batches: as given, or the global batch divided by data-parallel ranks and
 * micro-batch size. */
static bool
set_micro_batches(const LhScenario *s, const LhStepSizes *sizes, LhStepParams *p, GError **error)
{
    const uint64_t of_all = (uint64_t)sizes->data * p->module.attention.batch;

    p->micro_batches = (uint32_t)MAX(s->num_micro_batches, 1);
    if (s->num_micro_batches != 0 && s->global_batch_size != 0 &&
        !lh_scenario_has_option(s, "num_micro_batches") &&
        s->global_batch_size != of_all * s->num_micro_batches)
        return lh_scenario_error(
            s, "num_micro_batches", error,
            "%" PRIu64 " micro-batches of %u sequences on each of %u data-parallel ranks do not "
            "make the %" PRIu64 " sequences of a step",
            s->num_micro_batches, p->module.attention.batch, sizes->data, s->global_batch_size);
    if (s->num_micro_batches != 0 || s->global_batch_size == 0)
        return true;
    if (s->global_batch_size % of_all != 0 || s->global_batch_size / of_all > UINT16_MAX)
        return lh_scenario_error(
            s, "micro_batch_size", error,
            "a step of %" PRIu64
            " sequences cannot be split into micro-batches of %u on each of %u data-parallel ranks",
            s->global_batch_size, p->module.attention.batch, sizes->data);
    p->micro_batches = (uint32_t)(s->global_batch_size / of_all);
    return true;
}

bool
lh_setup_check_step_fields(const LhScenario *s, GError **error)
{
    const LhField *fields = lh_scenario_fields();

    if (s->step && s->pass == LH_PASS_BWD - 1)
        return lh_scenario_error(s, "pass", error,
                                 "a step has both passes (both), or is the forward pass alone "
                                 "(fwd), a prefill");
    if (s->step && lh_scenario_has(s, "attention"))
        return lh_scenario_error(s, "attention", error,
                                 "a training step takes the kind of attention from its model");
    for (; !s->step && fields->name != NULL; fields++) {
        if ((fields->flags & LH_SCENARIO_OF_STEP) != 0 && strcmp(fields->name, "step") != 0 &&
            lh_scenario_has(s, fields->name))
            return lh_scenario_error(s, fields->name, error,
                                     "it applies to a whole training step: give --step, too");
    }
    return true;
}

/* ---- tiles ---- */

#define ROWS_MAX (UINT64_C(1) << 40)

/* Reads a number of rows. */
static bool
take_rows(const LhScenario *s, const char *field, const char *text, uint64_t *rows, GError **error)
{
    g_autoptr(GError) wrong = NULL;

    if (!lh_unit_parse(text, LH_UNIT_COUNT, rows, &wrong))
        return lh_scenario_error(s, field, error, "%s", wrong->message);
    if (*rows >= 1 && *rows <= ROWS_MAX)
        return true;
    return lh_scenario_error(s, field, error, "found %s rows; allowed: 1 to %" PRIu64, text,
                             ROWS_MAX);
}

/* Reads --loss: a kind, and the rows of a chunk if it is one in chunks. */
static bool
set_loss(const LhScenario *s, const LhFramework *f, LhStepParams *p, GError **error)
{
    g_auto(GStrv) words = s->loss != NULL ? g_strsplit(s->loss, ":", 2) : NULL;
    int kind = 0;

    p->loss = (LhLoss)f->logits_loss;
    p->loss_chunk_rows = f->logits_chunk_rows;
    if (words == NULL)
        return true;
    while (lh_loss_names[kind] != NULL && strcmp(lh_loss_names[kind], words[0]) != 0)
        kind++;
    if (kind == LH_LOSSES)
        return lh_scenario_error(s, "loss", error,
                                 "found \"%s\"; allowed: eager, fused, chunked[:ROWS], "
                                 "tiled[:ROWS], fused-linear[:ROWS]",
                                 s->loss);
    if (kind != (int)p->loss)
        p->loss_chunk_rows = 0;
    p->loss = (LhLoss)kind;
    if (words[1] == NULL)
        return true;
    if (!lh_step_loss_in_chunks(p))
        return lh_scenario_error(
            s, "loss", error, "found \"%s\": a loss that is not in chunks has no rows of a chunk",
            s->loss);
    return take_rows(s, "loss", words[1], &p->loss_chunk_rows, error);
}

/* Reads --tiled-mlp: rows of a tile, or auto. */
static bool
set_tiled_mlp(const LhScenario *s, LhStepParams *p, GError **error)
{
    p->mlp_tile_rows = s->tiled_mlp != NULL ? p->model->hidden_size : 0;
    return s->tiled_mlp == NULL || strcmp(s->tiled_mlp, "auto") == 0 ||
           take_rows(s, "tiled_mlp", s->tiled_mlp, &p->mlp_tile_rows, error);
}

/* ---- the model ---- */

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Suggests sizes that divide both the heads and the ranks of a stage. */
static bool
refuse_heads(const LhScenario *s, const LhStepSizes *sizes, uint64_t heads, uint64_t padded,
             GError **error)
{
    const uint64_t ranks = (uint64_t)sizes->tensor * sizes->context * sizes->data;
    g_autofree char *near = NULL;
    uint32_t below, above;

    lh_divisors_near((uint32_t)common_divisor(heads, ranks), sizes->tensor, UINT32_MAX, &below,
                     &above);
    near = lh_near_text(below, above);
    return lh_scenario_error(
        s, "tensor_model_parallel_size", error,
        "%" PRIu64
        " heads cannot be split among %u ranks; --pad heads or --pad width makes them %" PRIu64
        "; nearest legal numbers: %s",
        heads, sizes->tensor, padded, near);
}

static void
set_heads(const LhScenario *s, LhModel *m, uint64_t heads, uint64_t groups)
{
    if (s->pad == LH_PAD_WIDTH)
        m->hidden_size = m->hidden_size / m->num_attention_heads * heads;
    m->num_attention_heads = heads;
    m->num_query_groups = groups;
}

/* Pads the heads to a multiple of the tensor-parallel size. Key-value heads are padded too if there
 * are as many. */
static bool
pad_model(const LhScenario *s, const LhStepSizes *sizes, LhModel *m, GError **error)
{
    const uint32_t tensor = sizes->tensor;
    const uint64_t heads = (m->num_attention_heads + tensor - 1) / tensor * tensor;
    const bool grouped = m->num_query_groups != m->num_attention_heads;

    if (heads == m->num_attention_heads)
        return true;
    if (s->pad < 0)
        return refuse_heads(s, sizes, m->num_attention_heads, heads, error);
    if (grouped && heads % m->num_query_groups != 0)
        return lh_scenario_error(s, "pad", error,
                                 "%" PRIu64 " heads cannot be padded to %" PRIu64 " with %" PRIu64
                                 " key-value heads",
                                 m->num_attention_heads, heads, m->num_query_groups);
    set_heads(s, m, heads, grouped ? m->num_query_groups : heads);
    return true;
}

static void
take_heads(const LhProgramParams *p, const LhScenario *s, LhModel *m)
{
    if (s->num_attention_heads != 0 || s->num_query_groups != 0 || s->kv_channels != 0) {
        m->num_attention_heads = p->attention.heads;
        m->num_query_groups = p->attention.groups;
        m->kv_channels = p->attention.head_dim;
    }
}

/* ---- schedules ---- */

/* The schedule for layers of @kind. On one rank a default is used if there is none. */
static const LhSchedule *
schedule_of(const LhSetup *setup, const LhSchedule *schedule, LhLayerKind kind)
{
    const bool linear = kind == LH_LAYER_LINEAR;
    const LhSchedule *side = schedule != NULL ? lh_schedule_side(schedule, linear) : NULL;

    return side == NULL && setup->step->params.module.ranks == 1
               ? lh_pairs_default(linear, schedule)
               : side;
}

/* Pads the heads as @schedule does: those that context-parallel ranks split, of which each
 * tensor-parallel rank has its part. */
static void
pad_for_schedule(const LhSetup *setup, const LhSchedule *schedule, LhModel *m)
{
    const LhStepParams *p = &setup->step->params;
    const uint64_t tensor = p->tensor_parallel;
    LhProgramParams module = p->module;
    LhAttention *a = &module.attention;

    if (schedule == NULL || !lh_schedule_reads(schedule, &lh_option_pad_heads))
        return;
    a->heads = (uint32_t)(m->num_attention_heads / tensor);
    a->groups = (uint32_t)MAX(m->num_query_groups / tensor, 1);
    lh_option_set(&module, &lh_option_pad_heads, (LhOptionValue){ .first = 1 });
    module = lh_schedule_params(schedule, &module);
    if (a->heads * tensor != m->num_attention_heads)
        set_heads(setup->scenario, m, a->heads * tensor, a->groups * tensor);
}

void
lh_setup_step_pad(const LhSetup *setup, const LhSchedule *schedule, LhModel *model)
{
    if (setup->scenario->pad < 0 || setup->step->params.module.ranks == 1)
        return;
    for (int kind = 0; kind < LH_LAYER_KINDS; kind++)
        pad_for_schedule(setup, schedule_of(setup, schedule, (LhLayerKind)kind), model);
}

/* Whether @schedule, which is tensor parallelism itself, gets the context-parallel ranks: only if
 * the scenario gives no tensor-parallel size. */
static bool
shares_weights(const LhSetup *setup, const LhSchedule *schedule)
{
    return schedule != NULL && schedule->placement == LH_PLACE_HEADS &&
           setup->scenario->tensor_model_parallel_size == NULL &&
           setup->step->params.module.ranks > 1;
}

LhStepParams
lh_setup_step_params(const LhSetup *setup, const LhSchedule *schedule, LhModel *model)
{
    LhStepParams p = setup->step->params;

    *model = setup->step->model;
    p.model = model;
    for (int kind = 0; kind < LH_LAYER_KINDS; kind++)
        p.schedule[kind] = schedule_of(setup, schedule, (LhLayerKind)kind);
    lh_setup_step_pad(setup, schedule, model);
    if (!shares_weights(setup, schedule))
        return p;
    for (int kind = 0; kind < LH_LAYER_KINDS; kind++)
        p.schedule[kind] = lh_pairs_default(kind == LH_LAYER_LINEAR, NULL);
    p.tensor_parallel *= p.module.ranks;
    p.module.ranks = 1;
    return p;
}

LhProgram *
lh_setup_program(const LhSetup *setup, const LhSchedule *schedule, GError **error)
{
    LhProgram *program;
    LhStepParams p;
    LhModel model;

    if (setup->step == NULL)
        return lh_program_new(schedule, &setup->params, error);
    p = lh_setup_step_params(setup, schedule, &model);
    program = lh_step_new(&p, error);
    /* A step with an attention stub in place of its schedules only serves as a lower bound. */
    if (program != NULL && p.attention == NULL && !lh_verify_step_form(program, error))
        g_clear_pointer(&program, lh_program_free);
    return program;
}

/* ---- all of it ---- */

bool
lh_setup_step_check_frameworks(const LhScenario *scenario, GError **error)
{
    static const char *const names[] = { DEFAULT_FRAMEWORK, DEFAULT_TENSOR_FRAMEWORK };

    for (gsize i = 0; scenario->framework == NULL && i < G_N_ELEMENTS(names); i++) {
        g_autoptr(LhFramework) framework = lh_framework_load(names[i], error);

        if (framework == NULL)
            return false;
    }
    return true;
}

static LhFramework *
load_framework(const LhSetup *setup, uint32_t tensor, GError **error)
{
    const char *name = setup->scenario->framework;
    const GPtrArray *values = setup->scenario->framework_values;
    LhFramework *framework;

    if (name == NULL)
        name = tensor > 1 ? DEFAULT_TENSOR_FRAMEWORK : DEFAULT_FRAMEWORK;
    framework = lh_framework_load(name, error);
    for (guint i = 0; framework != NULL && values != NULL && i < values->len; i++) {
        const char *text = g_ptr_array_index(values, i);
        g_autofree char *key = g_strndup(text, strcspn(text, "="));
        const bool set = lh_framework_set(framework, key, strchr(text, '=') + 1,
                                          "the configuration of --from-config");

        g_assert(set);
    }
    return framework;
}

void
lh_setup_step_policy(LhSetupStep *step, LhShard shard, LhCheckpoint checkpoint)
{
    LhStepParams *p = &step->params;

    p->shard = shard;
    p->checkpoint = p->forward_only ? LH_CHECKPOINT_NONE : checkpoint;
    p->behaviour = lh_step_behaviour(step->framework, shard, p->module.attention.dtype);
    p->behaviour.clip = CLIP;
    if (lh_setup_is_alone(step->framework, p->data_parallel * p->module.ranks))
        p->behaviour.gradients_stay = false; /* they are made by the backward pass */
    p->behaviour.head_fp32 =
        step->framework->logits_chunk_products == LH_TYPE_FP32 && p->loss == LH_LOSS_CHUNKED;
    /* Shards of gradients leave when they have been reduced; buffers stay for the optimizer. */
    p->gradients_leave = p->optimizer_offload > 0 && shard >= LH_SHARD_ZERO2;
    if (lh_step_loss_in_place(p))
        lh_step_fuse_loss(&p->behaviour);
}

bool
lh_setup_fill_step(LhSetup *setup, const LhStepSizes *sizes, GError **error)
{
    const LhScenario *s = setup->scenario;
    LhSetupStep *step = setup->step = g_new0(LhSetupStep, 1);
    LhStepParams *p = &step->params;
    LhCheckpoint checkpoint;

    if (!lh_setup_check_prefill(s, error))
        return false;
    setup->framework = step->framework = load_framework(setup, sizes->tensor, error);
    if (step->framework == NULL)
        return false;
    lh_setup_alone(step->framework, sizes->data * sizes->context);
    if (!lh_setup_optimizer(s, setup->params.attention.dtype, step->framework, error))
        return false;
    lh_constants_apply_framework(&s->constants, step->framework);
    step->model = *setup->model;
    take_heads(&setup->params, s, &step->model);
    if (!pad_model(s, sizes, &step->model, error))
        return false;
    p->module = setup->params;
    p->module.data_parallel_size = 0;
    p->module.ranks = sizes->context;
    if (p->module.mask.window != 0 &&
        s->window_size == 0) { /* the model's window, of its windowed layers only */
        p->window = p->module.mask.window;
        p->module.mask.window = 0;
    } else if (!lh_scenario_has(s, "window_size") && !lh_scenario_has(s, "mask") &&
               setup->model->sliding_window > 0 &&
               setup->model->sliding_window < p->module.attention.seq_length) {
        p->window = setup->model->sliding_window;
    }
    p->tensor_parallel = sizes->tensor;
    p->data_parallel = sizes->data;
    p->forward_only = s->pass == LH_PASS_FWD - 1;
    p->model = &step->model;
    if (!set_pipeline(s, sizes, p, error))
        return false;
    if (!set_micro_batches(s, sizes, p, error) || !lh_setup_packs(setup, error) ||
        !set_loss(s, step->framework, p, error) || !set_tiled_mlp(s, p, error) ||
        !lh_setup_lora(s, p, error) || !lh_setup_muon(s, p, error))
        return false;
    if (!lh_setup_offload(setup, p, error) ||
        !lh_setup_recomputation(s, step->framework, &checkpoint, &p->recompute, error))
        return false;
    if (p->forward_only)
        lh_setup_prefill(p);
    lh_setup_step_policy(step, lh_setup_step_shard(s, step->framework), checkpoint);
    p->learning_rate = LEARNING_RATE;
    return true;
}

void
lh_setup_clear_step(LhSetup *setup)
{
    if (setup->step != NULL) {
        g_clear_pointer(&setup->framework, lh_framework_free);
        g_clear_pointer(&setup->step->drawn, lh_documents_free);
    }
    g_clear_pointer(&setup->step, g_free);
}

LhProgram *
lh_setup_step_program(const LhScenario *scenario, const LhSources *from, const LhSchedule *schedule,
                      uint32_t ranks, GError **error)
{
    LhModel model = *from->model;
    LhDocuments documents = from->documents != NULL ? *from->documents : (LhDocuments){ 0 };
    LhSetup setup = { .scenario = scenario,
                      .model = &model,
                      .documents = from->documents != NULL ? &documents : NULL };
    LhStepSizes sizes = { .tensor = 1, .context = 1, .data = 1, .pipeline = 1 };
    LhProgram *program = NULL;

    if (lh_setup_step_sizes(scenario, ranks, &sizes, error) &&
        lh_setup_params(scenario, from, sizes.context * sizes.data, &setup.params, error) &&
        lh_setup_fill_step(&setup, &sizes, error))
        program = lh_setup_program(&setup, schedule, error);
    lh_setup_clear_step(&setup);
    return program;
}
