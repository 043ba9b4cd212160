/*
 * Making the program of a step: what is refused, and the plan.
 */
#include "step/formulas.h"
#include "step/step_private.h"

#include <inttypes.h>
#include <string.h>

#define RANKS_MAX LH_RANKS_MAX
#define PIPELINE_WORK_MAX (UINT32_C(1) << 17) /* of which each takes some 20 KiB */

/* ---- frameworks ---- */

static LhDtype
dtype_of(int type, LhDtype activation)
{
    return type == LH_TYPE_FP32 ? LH_DTYPE_FP32 : activation;
}

/* Bytes of a logit that the loss holds beside what the tables name: 16 bits, fp32, a gradient in
 * fp32 and, where all stay until it is cast, that in 16 bits. */
static uint32_t
unfused_loss(const LhFramework *f)
{
    const double named = f->logits_gradient_bytes > 0 ? 12 : 10, held = lh_framework_logit_bytes(f);

    return f->logits_fp32_bytes > 0 && held > named ? (uint32_t)(held - named) : 0;
}

LhStepBehaviour
lh_step_behaviour(const LhFramework *f, LhShard shard, LhDtype activation)
{
    const LhDtype kept = dtype_of(f->states_gradient, activation);
    const LhDtype bucket = dtype_of(f->ddp_gradient_reduce, activation);
    const LhDtype gradient = shard == LH_SHARD_FSDP  ? dtype_of(f->fsdp_gradient_reduce, activation)
                             : shard == LH_SHARD_DDP ? bucket
                                                     : kept;
    /* Copies are buckets that are no gradients themselves, and what the optimizer reads if that is
     * another type than was reduced. */
    const bool ddp = shard == LH_SHARD_DDP, copied = ddp && gradient != kept;

    return (LhStepBehaviour){
        .unit_is_model = shard == LH_SHARD_FSDP && f->fsdp_unit == LH_FSDP_MODEL,
        .halves = f->fsdp_halves,
        .reshard = f->fsdp_reshard,
        .prefetch = (uint32_t)f->fsdp_prefetch,
        .overlap_reduce = shard == LH_SHARD_FSDP || f->ddp_overlap,
        .reduce_each = f->fsdp_reduce_every_micro_batch,
        .gradients_stay = shard < LH_SHARD_ZERO2 && !copied,
        .copy_bytes = (ddp && f->ddp_bucket_copies ? lh_dtype_bytes(bucket) : 0) +
                      (copied ? lh_dtype_bytes(kept) : 0),
        .overlap_tensor = f->tp_overlap_gather || f->tp_overlap_scatter,
        .gather_again = f->tp_overlap_gather,
        .gradients_fp32 = gradient == LH_DTYPE_FP32,
        .logits_fp32 = f->logits_fp32_bytes > 0,
        .logits_stay = f->logits_gradient_bytes > 0,
        .step_bytes = (uint32_t)f->states_step_bytes,
        .other_bytes = f->memory_other_bytes,
        .norm_traffic = (uint32_t)f->kernels_norm,
        .rotary_traffic = (uint32_t)f->kernels_rotary,
        .glu_traffic = (uint32_t)f->kernels_glu,
        .activation_traffic = (uint32_t)f->kernels_activation,
        .residual_traffic = (uint32_t)f->kernels_residual,
        .unfused_bytes = (uint32_t)f->kernels_unfused,
        .unfused_loss = unfused_loss(f),
        .loss_traffic = (uint32_t)f->kernels_loss,
        .optimizer_traffic = (uint32_t)f->kernels_optimizer,
    };
}

/* ---- what is refused ---- */

/* "nearest legal numbers of stages: 3, 6": those next to @value for which @p would be legal, none
 * above @most; @what they are. Caller frees. */
static char *
legal_near(const LhStepParams *p, const char *what, uint64_t value, uint64_t most,
           bool (*is_legal)(const LhStepParams *p, uint64_t value))
{
    uint64_t below = MIN(value, most), above = value + 1;
    g_autofree char *numbers = NULL;

    while (below > 0 && !is_legal(p, below))
        below--;
    while (above <= most && !is_legal(p, above))
        above++;
    if (below == 0 && above > most)
        return g_strdup_printf("there are no legal %s for these ranks", what);
    numbers = lh_near_text(below, above <= most ? above : below);
    return g_strdup_printf("nearest legal %s: %s", what, numbers);
}

/* What tensor-parallel ranks share among them. */
typedef struct {
    const char *what;
    uint64_t size;
} Shared;

#define SHARED_MAX 4

static guint
find_shared(const LhModel *m, Shared shared[SHARED_MAX])
{
    const uint64_t dense =
        m->num_experts > 0 && lh_model_dense(m) > 0 ? m->weights.dense_ffn_hidden_size : 0;
    const Shared all[SHARED_MAX] = {
        { "the number of heads", m->num_attention_heads },
        { m->num_experts > 0 ? "the width of an expert" : "the width of the MLP",
          m->ffn_hidden_size },
        { "the width of a shared expert", m->weights.shared_ffn_hidden_size },
        { "the width of the dense layers' MLP", dense },
    };

    memcpy(shared, all, sizeof(all));
    return SHARED_MAX;
}

/* Of the vocabulary, on each of @t ranks. */
static uint64_t
tokens_of(const LhModel *m, uint64_t t)
{
    return (m->vocab_size + t - 1) / t;
}

static bool
has_vocabulary(const LhModel *m, uint64_t t)
{
    return m->vocab_size > (t - 1) * tokens_of(m, t);
}

static bool
has_groups(const LhModel *m, uint64_t t)
{
    const uint64_t groups = MAX(m->num_query_groups, 1);

    return groups % t == 0 || t % groups == 0;
}

/* Of the ranks of a stage so many, and the others context- and data-parallel. */
static bool
is_tensor_size(const LhStepParams *p, uint64_t t)
{
    Shared shared[SHARED_MAX];
    const guint count = find_shared(p->model, shared);

    for (guint i = 0; i < count; i++) {
        if (shared[i].size % t != 0)
            return false;
    }
    return lh_step_stage_ranks(p) % t == 0 && has_vocabulary(p->model, t) &&
           has_groups(p->model, t);
}

static bool
check_tensor_parallel(const LhStepParams *p, GError **error)
{
    const LhModel *m = p->model;
    const uint64_t t = p->tensor_parallel, most = lh_step_stage_ranks(p);
    g_autofree char *near = NULL;
    Shared shared[SHARED_MAX];
    const guint count = find_shared(m, shared);

    if (is_tensor_size(p, t))
        return true;
    near = legal_near(p, "tensor-parallel sizes", t, most, is_tensor_size);
    for (guint i = 0; i < count; i++) {
        if (shared[i].size % t != 0)
            return lh_program_refuse(error,
                                     "%s, %" PRIu64 ", must be a multiple of the tensor-parallel "
                                     "size, %" PRIu64 "; %s",
                                     shared[i].what, shared[i].size, t, near);
    }
    if (!has_vocabulary(m, t))
        return lh_program_refuse(error,
                                 "a vocabulary of %" PRIu64 " tokens, %" PRIu64
                                 " on each of %" PRIu64
                                 " tensor-parallel ranks, leaves the last one without any; %s",
                                 m->vocab_size, tokens_of(m, t), t, near);
    return lh_program_refuse(error,
                             "%" PRIu64
                             " key-value heads can neither be shared among nor copied to "
                             "%" PRIu64 " tensor-parallel ranks: one number must divide the other; "
                             "%s",
                             MAX(m->num_query_groups, 1), t, near);
}

static bool
has_softmax(const LhModel *m)
{
    for (guint i = 0; i < m->layers->len; i++) {
        if (g_array_index(m->layers, LhLayerRun, i).kind == LH_LAYER_SOFTMAX)
            return true;
    }
    return false;
}

static bool
check_model(const LhStepParams *p, GError **error)
{
    const LhModel *m = p->model;

    if (m->weights.attention_parameters > 0)
        return lh_program_refuse(error,
                                 "%s has latent attention, whose projections steps do not have yet",
                                 m->name != NULL ? m->name : "the model");
    if (m->weights.embedding_width > 0)
        return lh_program_refuse(error,
                                 "an embedding that is not as wide as the model, %" PRIu64
                                 " of %" PRIu64 ", is in no step yet",
                                 m->weights.embedding_width, m->hidden_size);
    if (m->num_experts > 0 && m->experts_per_token <= m->weights.shared_experts)
        return lh_program_refuse(error,
                                 "of %" PRIu64 " experts that a token passes %" PRIu64
                                 " are shared, which leaves none for a router to choose",
                                 m->experts_per_token, m->weights.shared_experts);
    if (m->rotary_base > 0 && m->kv_channels % 2 != 0 && has_softmax(m))
        return lh_program_refuse(error,
                                 "heads of %" PRIu64 " elements cannot be turned by a rotary "
                                 "embedding, which takes pairs of them: give --kv-channels, or a "
                                 "model whose rotary_base is 0",
                                 m->kv_channels);
    if (m->num_layers > UINT16_MAX)
        return lh_program_refuse(error, "a step has at most %u layers", UINT16_MAX);
    return true;
}

/* The layers that stages share, with the ends that count. */
static uint64_t
places_of(const LhStepParams *p)
{
    return p->model->num_layers + (p->embedding_counts ? 1u : 0) + (p->loss_counts ? 1u : 0);
}

/* With as many chunks on each, and so many of all ranks on a stage. */
static bool
is_stages(const LhStepParams *p, uint64_t stages)
{
    const uint64_t parts = stages * lh_step_chunks(p);

    return parts <= p->model->num_layers && places_of(p) % parts == 0 &&
           lh_step_ranks(p) % stages == 0 &&
           (stages > 1 || (lh_step_chunks(p) == 1 && !p->embedding_counts && !p->loss_counts)) &&
           (lh_step_chunks(p) == 1 || p->micro_batches % stages == 0);
}

/* All stages and chunks have equally many layers, and with several chunks a stage passes its
 * micro-batches on in rounds of as many as there are stages. */
static bool
check_stages(const LhStepParams *p, GError **error)
{
    const uint32_t stages = lh_step_stages(p), chunks = lh_step_chunks(p);
    const uint64_t parts = (uint64_t)stages * chunks, all = places_of(p);
    g_autofree char *near = NULL;
    const char *ends = all == p->model->num_layers       ? ""
                       : all == p->model->num_layers + 2 ? ", with the embedding and the loss"
                       : p->loss_counts                  ? ", with the loss"
                                                         : ", with the embedding";

    if (is_stages(p, stages))
        return true;
    near = legal_near(p, "numbers of stages", stages, p->model->num_layers, is_stages);
    if (p->model->num_layers < parts)
        return lh_program_refuse(
            error, "%" PRIu64 " layers cannot be shared among %" PRIu64 "%s; %s",
            p->model->num_layers, parts,
            chunks > 1 ? " chunks of pipeline stages" : " pipeline stages", near);
    if (chunks > 1 && p->micro_batches % stages != 0) {
        const uint64_t below = p->micro_batches / stages * stages;
        g_autofree char *numbers = lh_near_text(below, below + stages);

        return lh_program_refuse(error,
                                 "with several chunks of layers on a stage, the number of "
                                 "micro-batches, %u, must be a multiple of the number of pipeline "
                                 "stages, %u; nearest legal numbers of micro-batches: %s",
                                 p->micro_batches, stages, numbers);
    }
    return lh_program_refuse(
        error,
        "the number of layers%s, %" PRIu64 ", must be a multiple of the number of %s, %" PRIu64
        "; %s",
        ends, all, chunks > 1 ? "chunks of all pipeline stages" : "pipeline stages", parts, near);
}

static bool
check_pipeline(const LhStepParams *p, GError **error)
{
    const uint32_t stages = lh_step_stages(p), chunks = lh_step_chunks(p);

    if (stages == 1 && chunks > 1)
        return lh_program_refuse(error, "several chunks of layers need several pipeline stages");
    if (chunks > 1 && p->pipeline_order != LH_PIPELINE_1F1B)
        return lh_program_refuse(error, "several chunks of layers on a pipeline stage need the "
                                        "order 1f1b");
    if (stages > 1 && p->model->num_layers * p->micro_batches > PIPELINE_WORK_MAX)
        return lh_program_refuse(error,
                                 "a pipeline has at most %u micro-batches times layers; here are "
                                 "%u times %" PRIu64,
                                 PIPELINE_WORK_MAX, p->micro_batches, p->model->num_layers);
    if (stages == 1 && (p->embedding_counts || p->loss_counts))
        return lh_program_refuse(error, "the embedding and the loss count as layers where these "
                                        "are shared among several pipeline stages");
    return check_stages(p, error);
}

bool
lh_step_check(const LhStepParams *p, GError **error)
{
    if (p->tensor_parallel == 0 || p->data_parallel == 0 || p->micro_batches == 0 ||
        p->module.ranks == 0)
        return lh_program_refuse(error, "a step needs at least one rank and one micro-batch");
    if (lh_step_ranks(p) > RANKS_MAX)
        return lh_program_refuse(error, "a step has at most %u ranks", RANKS_MAX);
    if (p->micro_batches > UINT16_MAX)
        return lh_program_refuse(error, "a step has at most %u micro-batches", UINT16_MAX);
    if (p->module.mask.documents_count > 0)
        return lh_program_refuse(error, "steps have no packed documents yet");
    return check_model(p, error) && check_tensor_parallel(p, error) && check_pipeline(p, error);
}

/* ---- the plan ---- */

static void
free_list(LhStepList *list)
{
    g_clear_pointer(&list->calls, g_array_unref);
    g_clear_pointer(&list->uses, g_array_unref);
    g_clear_pointer(&list->tensors, g_array_unref);
    g_clear_pointer(&list->chunks, g_array_unref);
}

static void
free_plan(void *data)
{
    LhStepPlan *plan = data;

    lh_step_clear_modules(plan);
    for (uint32_t i = 0; plan->stages != NULL && i < lh_step_stages(&plan->params); i++) {
        free_list(&plan->stages[i].inner);
        free_list(&plan->stages[i].last);
    }
    g_free(plan->stages);
    g_clear_pointer(&plan->args, g_array_unref);
    g_clear_pointer(&plan->classes, g_array_unref);
    g_free(plan->kinds);
    g_free(plan->dense);
    g_free(plan);
}

/* What the builder needs of the model; its texts stay with their owner. */
static LhModel
copy_model(const LhModel *model)
{
    LhModel copy = *model;

    copy.name = copy.description = copy.source = copy.sha256 = NULL;
    copy.layers = NULL;
    return copy;
}

static LhStepKind
run_kind(const LhStepParams *p, const LhLayerRun *run)
{
    if (run->kind == LH_LAYER_LINEAR)
        return LH_STEP_LINEAR;
    return p->window > 0 && !run->whole ? LH_STEP_WINDOWED : LH_STEP_SOFTMAX;
}

static void
set_layers(LhStepPlan *plan, const LhStepParams *p)
{
    plan->layers = (uint32_t)p->model->num_layers;
    plan->dense = g_new0(bool, plan->layers);
    plan->kinds = g_new0(uint8_t, plan->layers);
    for (uint32_t i = 0; i < plan->layers; i++) {
        const LhLayerRun *run = lh_model_layer(p->model, i);

        plan->dense[i] =
            p->model->num_experts == 0 || i < p->model->weights.dense_layers || run->dense;
        plan->kinds[i] = (uint8_t)run_kind(p, run);
        plan->gated[plan->kinds[i]] |= run->output_gate;
        plan->kind_layers[plan->kinds[i]]++;
    }
}

static LhStepPlan *
new_plan(const LhStepParams *p)
{
    LhStepPlan *plan = g_new0(LhStepPlan, 1);

    plan->params = *p;
    plan->model = copy_model(p->model);
    plan->params.model = &plan->model;
    plan->data_ranks = p->module.ranks * p->data_parallel;
    if (plan->data_ranks == 1)
        plan->params.shard = LH_SHARD_DDP;
    plan->args = g_array_new(FALSE, FALSE, sizeof(LhKernelArgs));
    plan->classes = g_array_new(FALSE, FALSE, sizeof(LhStepClass));
    plan->stages = g_new0(LhStepStage, lh_step_stages(p));
    set_layers(plan, p);
    return plan;
}

/* The rows of a context-parallel rank, and how they are cut among tensor-parallel ranks. */
static bool
set_rows(LhStepPlan *plan, GError **error)
{
    const LhAttention *a = &plan->params.module.attention;
    const LhPlacement *placement = &plan->modules[plan->kinds[0]].forward->placement;
    const uint64_t ranks = plan->params.module.ranks, tokens = a->seq_length / ranks;
    g_autofree char *near = NULL;
    uint64_t cut, below;

    plan->segments = lh_placement_parts(placement);
    cut = (uint64_t)plan->segments * plan->params.tensor_parallel;
    plan->rows = a->batch * tokens;
    if (tokens % cut == 0)
        return true;
    below = a->seq_length / (cut * ranks) * cut * ranks;
    near = lh_near_text(below, below + cut * ranks);
    return lh_program_refuse(error,
                             "the number of tokens of a context-parallel rank, %" PRIu64
                             ", must be a multiple of its segments times the tensor-parallel size, "
                             "%" PRIu64 "; nearest legal sequence lengths: %s",
                             tokens, cut, near);
}

/* ---- slots ---- */

static const char *const family_names[LH_STEP_FAMILIES] = {
    [LH_STEP_OF_WEIGHT] = "w",
    [LH_STEP_OF_WEIGHT_SHARD] = "ws",
    [LH_STEP_OF_GRADIENT] = "g",
    [LH_STEP_OF_GRADIENT_SUM] = "gr",
    [LH_STEP_OF_GRADIENT_SHARD] = "gs",
    [LH_STEP_OF_MASTER] = "master",
    [LH_STEP_OF_MOMENTS] = "moments",
    [LH_STEP_OF_CLOCK] = "clock",
    [LH_STEP_OF_STEP_COPY] = "step_copy",
    [LH_STEP_OF_FLAT_GRADIENT] = "flat_gradient",
    [LH_STEP_OF_UNFUSED] = "unfused",
    [LH_STEP_OF_GRADIENT_COPY] = "gradient_copy",
    [LH_STEP_OF_TOKENS] = "tokens",
    [LH_STEP_OF_TARGETS] = "targets",
    [LH_STEP_OF_LOSS] = "loss",
    [LH_STEP_OF_NORM] = "grad_norm",
    [LH_STEP_OF_OTHER] = "other",
};

/* "saved.x", "w.norm1", "w.kv_lin", "w.head@3": the family, what it is of, of which layers where
 * they differ, and of which stage if it is one's alone. */
static char *
slot_name(const LhStepClass *c)
{
    GString *name = g_string_new(NULL);

    if (c->family == LH_STEP_OF_ROLE)
        g_string_printf(name, "%s%s%s", c->kept ? "saved." : "",
                        lh_step_role_name((LhStepRole)c->what), c->name);
    else if (c->family >= LH_STEP_OF_STEP_COPY && c->family != LH_STEP_OF_CLOCK)
        g_string_printf(name, "%s%s%s", c->kept ? "saved." : "", family_names[c->family],
                        c->what == LH_STEP_W_HEAD ? "_loss" : "");
    else
        g_string_printf(name, "%s.%s%s", family_names[c->family],
                        lh_step_weight_name((LhStepWeight)c->what), c->name);
    if (c->stage != LH_STEP_NONE)
        g_string_append_printf(name, "@%u", c->stage);
    return g_string_free(name, FALSE);
}

static void
declare(LhStepPlan *plan, LhProgram *program)
{
    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "tensor", LH_STREAM_COMM);
    lh_program_add_stream(program, "gather", LH_STREAM_COMM);
    lh_program_add_stream(program, "scatter", LH_STREAM_COMM);
    if (lh_step_stages(&plan->params) > 1)
        lh_program_add_stream(program, "pipe", LH_STREAM_COMM);
    for (guint i = 0; i < plan->classes->len; i++) {
        const uint32_t ranks = (uint32_t)lh_step_stage_ranks(&plan->params);
        LhStepClass *c = &g_array_index(plan->classes, LhStepClass, i);
        const bool alone = c->stage != LH_STEP_NONE;
        g_autofree char *name = slot_name(c);

        c->slot = lh_program_add_slot(program, (LhSlotParams){
                                                   .name = name,
                                                   .kind = c->shape.kind,
                                                   .role = c->stays ? LH_SLOT_STATE : LH_SLOT_TEMP,
                                                   .dtype = c->shape.dtype,
                                                   .head_dim = c->shape.head_dim,
                                                   .category = c->shape.category,
                                                   .parts = c->shape.parts * c->instances,
                                                   .part_bytes = c->shape.part_bytes,
                                                   .first_rank = alone ? c->stage * ranks : 0,
                                                   .ranks_count = alone ? ranks : 0,
                                               });
    }
    lh_step_declare_modules(plan, program);
    program->modules = plan->programs;
    program->modules_count = G_N_ELEMENTS(plan->programs);
}

/* The whole program's parameters: all ranks, and the tokens of all of them. */
static LhProgramParams
program_params(const LhStepPlan *plan)
{
    LhProgramParams p = plan->params.module;

    p.ranks = (uint32_t)lh_step_ranks(&plan->params);
    p.attention.seq_length *= plan->params.data_parallel;
    p.attention.heads = (uint32_t)plan->model.num_attention_heads;
    p.attention.groups = (uint32_t)plan->model.num_query_groups;
    p.attention.head_dim = (uint32_t)plan->model.kv_channels;
    p.attention.hidden_size = (uint32_t)plan->model.hidden_size;
    p.pass = LH_PASS_BOTH;
    p.data_parallel_size = 0;
    p.options_count = 0;
    return p;
}

/* What is held for the whole step and no op touches; of a stage alone, or of all. */
static void
add_held(LhStepPlan *plan, LhStepFamily family, uint32_t stage)
{
    const LhStepTensor held = { .family = (uint8_t)family,
                                .stays = true,
                                .stage = (uint16_t)(stage == LH_STEP_NONE ? 0 : stage) };
    LhStepClass c = { .family = (uint8_t)family, .stays = true, .stage = stage, .instances = 1 };

    c.shape = lh_step_tensor_shape(plan, &held);
    if (c.shape.part_bytes > 0)
        g_array_append_val(plan->classes, c);
}

/* Copies of gradients are as many as a stage has gradients. */
static void
add_all_held(LhStepPlan *plan)
{
    const uint32_t stages = lh_step_stages(&plan->params);

    for (uint32_t stage = 0; stage < stages; stage++)
        add_held(plan, LH_STEP_OF_GRADIENT_COPY, stages == 1 ? LH_STEP_NONE : stage);
    add_held(plan, LH_STEP_OF_OTHER, LH_STEP_NONE);
}

static void
record(LhStepPlan *plan)
{
    g_autoptr(GPtrArray) turns = NULL;

    if (lh_step_stages(&plan->params) == 1) {
        if (plan->params.micro_batches > 1)
            lh_step_record(plan, &plan->stages->inner, false);
        lh_step_record(plan, &plan->stages->last, true);
        return;
    }
    turns = lh_step_turns(&plan->params);
    for (uint32_t stage = 0; stage < turns->len; stage++)
        lh_step_record_turns(plan, stage, g_ptr_array_index(turns, stage));
}

/* States bytes and flops, unless the schedule of attention states none: they are the same for all
 * ranks of a stage that have the same part of the sequence. */
static void
state_claims(LhProgram *program)
{
    const LhStepPlan *plan = program->step;
    const uint32_t ranks = lh_program_ranks(program);
    g_autofree uint64_t *bytes = g_new0(uint64_t, ranks), *flops = g_new0(uint64_t, ranks);
    bool sends = true, computes = true;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        const LhStepPlace place = lh_step_place_of(plan, rank);
        const uint32_t first = place.stage * (uint32_t)lh_step_stage_ranks(&plan->params) +
                               place.context * plan->params.tensor_parallel;

        bytes[rank] = bytes[first];
        flops[rank] = flops[first];
        for (unsigned dimension = 0; rank == first && dimension < LH_DIMENSIONS; dimension++) {
            uint64_t sent = 0;

            sends &= lh_step_bytes_sent(program, (LhDimension)dimension, rank, &sent);
            bytes[rank] += sent;
        }
        if (rank == first)
            computes &= lh_step_attention_flops(program, rank, &flops[rank]);
    }
    if (sends)
        program->claimed[LH_CLAIM_BYTES_SENT] = g_steal_pointer(&bytes);
    if (computes)
        program->claimed[LH_CLAIM_FLOPS] = g_steal_pointer(&flops);
}

/* Whether pieces of weights are of equal size, so that every rank's optimizer has as much to do. */
static bool
has_equal_pieces(const LhStepPlan *plan)
{
    const uint64_t pieces = lh_step_pieces(plan);

    for (guint i = 0; i < lh_step_stages(&plan->params); i++) {
        const LhStepList *list = &plan->stages[i].last;

        for (guint k = 0; k < list->calls->len; k++) {
            const LhStepCall *call = &g_array_index(list->calls, LhStepCall, k);

            if (call->does == LH_STEP_CALL_COMPUTE &&
                lh_kernels[call->kernel]->args == LH_ARGS_OPTIMIZER &&
                g_array_index(plan->args, LhKernelArgs, call->args).optimizer.count % pieces != 0)
                return false;
        }
    }
    return true;
}

/* Tensor-parallel ranks do the same unless some of them share key-value heads; the first one also
 * adds up the squares of what all of them have. Data-parallel ranks do. */
static LhSymmetry
symmetry_of(const LhStepPlan *plan)
{
    const LhStepParams *p = &plan->params;
    const bool shared = p->tensor_parallel > MAX(plan->model.num_query_groups, 1);

    return (LhSymmetry){
        .row = shared ? 1 : p->tensor_parallel,
        .shift = p->tensor_parallel * p->module.ranks,
        .shifts = has_equal_pieces(plan) ? p->data_parallel : 1,
    };
}

LhProgram *
lh_step_new(const LhStepParams *params, GError **error)
{
    LhProgramParams whole;
    LhStepPlan *plan;
    LhProgram *program;

    if (!lh_step_check(params, error))
        return NULL;
    plan = new_plan(params);
    if (!lh_step_make_modules(plan, error) || !set_rows(plan, error)) {
        free_plan(plan);
        return NULL;
    }
    record(plan);
    lh_step_place(plan);
    add_all_held(plan);
    lh_step_order(plan);
    whole = program_params(plan);
    program = lh_program_create("step", &lh_step_generator, &whole, LH_PLACE_CONTIGUOUS);
    program->plan = plan;
    program->step = plan;
    program->plan_free = free_plan;
    program->symmetry = symmetry_of(plan);
    declare(plan, program);
    if (params->attention == NULL) /* else it is not known what that does */
        state_claims(program);
    return program;
}

bool
lh_step_attention(const LhStepParams *params, LhStepAttention *attention, GError **error)
{
    LhStepPlan *plan;
    bool made;

    *attention = (LhStepAttention){ 0 };
    if (!lh_step_check(params, error))
        return false;
    plan = new_plan(params);
    made = lh_step_make_modules(plan, error);
    if (made)
        lh_step_take_attention(plan, attention);
    free_plan(plan);
    return made;
}

const LhStepParams *
lh_step_params(const LhProgram *program)
{
    return program->step != NULL ? &program->step->params : NULL;
}
