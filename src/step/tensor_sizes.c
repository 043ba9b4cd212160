/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows, widths and bytes of everything in the tables.
 */
#include "step/tensor_sizes.h"

#include "step/lora.h"
#include "step/memory/host_states.h"
#include "step/memory/kept_beside.h"
#include "step/muon/muon.h"
#include "step/muon/muon_calls.h"
#include "step/step_private.h"

#include "kernels/layer.h"
#include "kernels/sizes.h"

/* Width of a role's rows. */
typedef enum {
    WIDTH_ATTENTION, /* declared by the attention programs */
    WIDTH_HIDDEN,
    WIDTH_HEADS, /* the rank's query heads */
    WIDTH_KV,    /* k and v */
    WIDTH_UP,    /* of the MLP's first matrix */
    WIDTH_FFN,
    WIDTH_EXPERT_UP, /* likewise, of an expert */
    WIDTH_EXPERT_FFN,
    WIDTH_EXPERTS, /* one number per expert */
    WIDTH_ROUTE,   /* numbers that describe a choice */
    WIDTH_CHOICE,  /* one number per choice */
    WIDTH_VOCABULARY,
    WIDTH_STATS,
    WIDTH_RANK, /* of LoRA */
} Width;

typedef struct {
    uint8_t width; /* Width */
    bool full;     /* rows of the tensor-parallel group; else the rank's own */
    bool fp32;
    bool gathered; /* one for each tensor-parallel rank */
    bool chosen;   /* one row for each choice of a row of the tensor-parallel group */
    bool last;     /* one row for each sequence, in one part (gathered: for each member) */
    /* Term of a sum over tensor-parallel ranks, although it is not scattered itself. */
    bool term;
    uint8_t tiling;   /* LhStepTiling */
    LhStepRole alone; /* role without tensor parallelism */
} Role;

#define ROLE(role, ...) [LH_STEP_##role] = { .alone = LH_STEP_##role, __VA_ARGS__ }
#define OF_LOSS .tiling = LH_STEP_TILES_OF_LOSS
#define OF_MLP .tiling = LH_STEP_TILES_OF_MLP
#define SUM(role, own) [LH_STEP_##role] = { WIDTH_HIDDEN, true, .alone = LH_STEP_##own }

static const Role roles[LH_STEP_ROLES] = {
    ROLE(X, .width = WIDTH_HIDDEN),
    ROLE(N1, .width = WIDTH_HIDDEN),
    SUM(N1_FULL, N1),
    ROLE(Q_ROWS, .width = WIDTH_HEADS, .full = true),
    ROLE(KV_ROWS, .width = WIDTH_KV, .full = true),
    ROLE(Q, .width = WIDTH_ATTENTION),
    ROLE(KV, .width = WIDTH_ATTENTION),
    ROLE(O, .width = WIDTH_ATTENTION),
    ROLE(LSE, .width = WIDTH_ATTENTION),
    ROLE(STATE, .width = WIDTH_ATTENTION),
    ROLE(Q_HEADS, .width = WIDTH_ATTENTION),
    ROLE(KV_HEADS, .width = WIDTH_ATTENTION),
    ROLE(O_HEADS, .width = WIDTH_ATTENTION),
    ROLE(LSE_HEADS, .width = WIDTH_ATTENTION),
    ROLE(O_ROWS, .width = WIDTH_HEADS, .full = true),
    ROLE(O_NORMED, .width = WIDTH_HEADS, .full = true),
    ROLE(GATE, .width = WIDTH_HEADS, .full = true),
    ROLE(GATED, .width = WIDTH_HEADS, .full = true),
    SUM(A_SUM, A),
    ROLE(A, .width = WIDTH_HIDDEN),
    ROLE(X1, .width = WIDTH_HIDDEN),
    ROLE(N2, .width = WIDTH_HIDDEN),
    SUM(N2_FULL, N2),
    ROLE(UP, OF_MLP, .width = WIDTH_UP, .full = true),
    ROLE(P, OF_MLP, .width = WIDTH_FFN, .full = true),
    ROLE(ROUTER, .width = WIDTH_EXPERTS, .full = true),
    ROLE(ROUTE, .width = WIDTH_ROUTE, .chosen = true, .fp32 = true),
    ROLE(EXPERT_N2, .width = WIDTH_HIDDEN, .chosen = true),
    ROLE(EXPERT_UP, .width = WIDTH_EXPERT_UP, .chosen = true),
    ROLE(EXPERT_P, .width = WIDTH_EXPERT_FFN, .chosen = true),
    ROLE(EXPERT_M, .width = WIDTH_HIDDEN, .chosen = true, .term = true),
    ROLE(ROUTED, .width = WIDTH_HIDDEN, .full = true, .term = true),
    ROLE(SHARED, .width = WIDTH_HIDDEN, .full = true, .term = true),
    SUM(M_SUM, M),
    ROLE(M, .width = WIDTH_HIDDEN),
    ROLE(QKV_LOW, .width = WIDTH_RANK, .full = true),
    ROLE(OUT_LOW, .width = WIDTH_RANK, .full = true, .term = true),
    ROLE(UP_LOW, OF_MLP, .width = WIDTH_RANK, .full = true),
    ROLE(DOWN_LOW, OF_MLP, .width = WIDTH_RANK, .full = true, .term = true),
    SUM(E_SUM, X),
    ROLE(XF, .width = WIDTH_HIDDEN),
    SUM(XF_FULL, XF),
    ROLE(LOGITS, OF_LOSS, .width = WIDTH_VOCABULARY, .full = true),
    ROLE(LOGITS_FP32, OF_LOSS, .width = WIDTH_VOCABULARY, .full = true, .fp32 = true),
    ROLE(LOSS_STATS, OF_LOSS, .width = WIDTH_STATS, .full = true, .fp32 = true),
    [LH_STEP_LOSS_STATS_ALL] = { WIDTH_STATS, true, .fp32 = true, .gathered = true, OF_LOSS,
                                 .alone = LH_STEP_LOSS_STATS },
    ROLE(DLOGITS_FP32, OF_LOSS, .width = WIDTH_VOCABULARY, .full = true, .fp32 = true),
    ROLE(DLOGITS, OF_LOSS, .width = WIDTH_VOCABULARY, .full = true),
    SUM(DXF_SUM, DXF),
    ROLE(DXF, .width = WIDTH_HIDDEN),
    ROLE(DX, .width = WIDTH_HIDDEN),
    SUM(DX_FULL, DX),
    ROLE(M_TILE, OF_MLP, .width = WIDTH_HIDDEN, .full = true, .term = true),
    ROLE(DP, OF_MLP, .width = WIDTH_FFN, .full = true),
    ROLE(DUP, OF_MLP, .width = WIDTH_UP, .full = true),
    ROLE(DEXPERT_M, .width = WIDTH_HIDDEN, .chosen = true),
    ROLE(DROUTE, .width = WIDTH_CHOICE, .chosen = true, .fp32 = true, .term = true),
    ROLE(DEXPERT_P, .width = WIDTH_EXPERT_FFN, .chosen = true),
    ROLE(DEXPERT_UP, .width = WIDTH_EXPERT_UP, .chosen = true),
    ROLE(DEXPERT_N2, .width = WIDTH_HIDDEN, .chosen = true, .term = true),
    ROLE(DROUTER, .width = WIDTH_EXPERTS, .full = true, .term = true),
    SUM(DN2_SUM, DN2),
    ROLE(DN2, .width = WIDTH_HIDDEN),
    ROLE(DGATED, .width = WIDTH_HEADS, .full = true),
    ROLE(DGATE, .width = WIDTH_HEADS, .full = true),
    ROLE(DO_NORMED, .width = WIDTH_HEADS, .full = true),
    ROLE(DO_ROWS, .width = WIDTH_HEADS, .full = true),
    ROLE(DO, .width = WIDTH_ATTENTION),
    ROLE(DQ, .width = WIDTH_ATTENTION),
    ROLE(DKV, .width = WIDTH_ATTENTION),
    ROLE(DQ_ROWS, .width = WIDTH_HEADS, .full = true),
    ROLE(DKV_ROWS, .width = WIDTH_KV, .full = true),
    SUM(DN1_SUM, DN1),
    ROLE(DN1, .width = WIDTH_HIDDEN),
    ROLE(DQKV_LOW, .width = WIDTH_RANK, .full = true, .term = true),
    ROLE(DOUT_LOW, .width = WIDTH_RANK, .full = true),
    ROLE(DUP_LOW, OF_MLP, .width = WIDTH_RANK, .full = true, .term = true),
    ROLE(DDOWN_LOW, OF_MLP, .width = WIDTH_RANK, .full = true),
    ROLE(Q_DELTA, .width = WIDTH_HEADS, .full = true),
    ROLE(KV_DELTA, .width = WIDTH_KV, .full = true),
    ROLE(OUT_DELTA, .width = WIDTH_HIDDEN, .full = true, .term = true),
    ROLE(UP_DELTA, OF_MLP, .width = WIDTH_UP, .full = true),
    ROLE(DOWN_DELTA, OF_MLP, .width = WIDTH_HIDDEN, .full = true, .term = true),
    ROLE(M_TILE_DELTA, OF_MLP, .width = WIDTH_HIDDEN, .full = true, .term = true),
    ROLE(X_LAST, .width = WIDTH_HIDDEN, .last = true),
    ROLE(XF_LAST, .width = WIDTH_HIDDEN, .last = true),
    [LH_STEP_XF_LAST_ALL] = { WIDTH_HIDDEN, true, .gathered = true, .last = true,
                              .alone = LH_STEP_XF_LAST },
    ROLE(LOGITS_LAST, .width = WIDTH_VOCABULARY, .full = true, .last = true),
};

LhStepRole
lh_step_role(const LhStepPlan *plan, LhStepRole role)
{
    return plan->params.tensor_parallel > 1 ? role : roles[role].alone;
}

/* Every tensor-parallel rank holds the router's whole result, and rows times an A that is whole. */
static bool
is_replicated(const Role *r)
{
    return r->width == WIDTH_HIDDEN || r->width == WIDTH_RANK || r->width == WIDTH_EXPERTS ||
           r->width == WIDTH_ROUTE || r->width == WIDTH_CHOICE;
}

LhStepRows
lh_step_rows(LhStepRole role)
{
    const Role *r = &roles[role];

    return (LhStepRows){
        .alone = r->alone,
        .of_attention = r->width == WIDTH_ATTENTION,
        .full = r->width == WIDTH_STATS ? r->gathered : r->full,
        .sliced = r->term || !is_replicated(r),
        .undivided = r->width == WIDTH_STATS || r->chosen,
        .tiling = (LhStepTiling)r->tiling,
        .last = r->last,
    };
}

uint32_t
lh_step_tiles(const LhStepPlan *plan, LhStepTiling tiling)
{
    return plan->tiles[tiling];
}

uint32_t
lh_step_cuts(const LhStepPlan *plan)
{
    return plan->cuts;
}

/* Key-value heads of a tensor-parallel rank: its share, or one that it has in common with others.
 * Linear attention has one for each query head. */
static uint64_t
local_kv_heads(const LhStepPlan *plan, LhStepKind kind)
{
    const LhModel *m = &plan->model;
    const uint64_t heads = kind == LH_STEP_LINEAR ? m->num_attention_heads : m->num_query_groups;

    return MAX(heads / plan->params.tensor_parallel, 1);
}

uint64_t
lh_step_vocabulary(const LhStepPlan *plan)
{
    const uint64_t t = MAX(plan->params.tensor_parallel, 1);

    return (plan->model.vocab_size + t - 1) / t;
}

uint32_t
lh_step_experts(const LhStepPlan *plan)
{
    return (uint32_t)(plan->model.num_experts - plan->model.weights.shared_experts);
}

uint32_t
lh_step_choices(const LhStepPlan *plan)
{
    return (uint32_t)(plan->model.experts_per_token - plan->model.weights.shared_experts);
}

bool
lh_step_is_dense(const LhStepPlan *plan, uint32_t layer)
{
    return plan->dense[MIN(layer, plan->layers - 1)];
}

/* Width of the MLP that all rows of a layer pass: of a dense layer, or of all shared experts
 * together. */
static uint64_t
mlp_width(const LhStepPlan *plan, uint32_t layer)
{
    const LhModel *m = &plan->model;

    if (!lh_step_is_dense(plan, layer))
        return m->weights.shared_experts * (m->weights.shared_ffn_hidden_size > 0
                                                ? m->weights.shared_ffn_hidden_size
                                                : m->ffn_hidden_size);
    return m->num_experts > 0 && m->weights.dense_ffn_hidden_size > 0
               ? m->weights.dense_ffn_hidden_size
               : m->ffn_hidden_size;
}

static uint64_t
width_of(const LhStepPlan *plan, Width width, uint32_t layer)
{
    const LhModel *m = &plan->model;
    const uint64_t t = plan->params.tensor_parallel, gates = m->gated_mlp ? 2 : 1;

    switch (width) {
    case WIDTH_HIDDEN:
        return m->hidden_size;
    case WIDTH_HEADS:
        return m->num_attention_heads / t * m->kv_channels;
    case WIDTH_KV:
        return 2 * local_kv_heads(plan, lh_step_layer_kind(plan, layer)) * m->kv_channels;
    case WIDTH_UP:
        return mlp_width(plan, layer) / t * gates;
    case WIDTH_FFN:
        return mlp_width(plan, layer) / t;
    case WIDTH_EXPERT_UP:
        return m->ffn_hidden_size / t * gates;
    case WIDTH_EXPERT_FFN:
        return m->ffn_hidden_size / t;
    case WIDTH_EXPERTS:
        return lh_step_experts(plan);
    case WIDTH_ROUTE:
        return LH_ROUTE_NUMBERS;
    case WIDTH_CHOICE:
        return 1;
    case WIDTH_VOCABULARY:
        return lh_step_vocabulary(plan);
    case WIDTH_STATS:
        return 3;
    case WIDTH_RANK:
        return plan->params.lora_rank;
    case WIDTH_ATTENTION:
    default:
        return 0;
    }
}

static bool
is_logits(LhStepRole role)
{
    return (role >= LH_STEP_LOGITS && role <= LH_STEP_DLOGITS) || role == LH_STEP_LOGITS_LAST;
}

LhStepShape
lh_step_role_shape(const LhStepPlan *plan, LhStepRole role, uint32_t layer)
{
    const Role *r = &roles[role];
    const uint32_t t = plan->params.tensor_parallel, tiles = MAX(plan->tiles[r->tiling], 1);
    const LhDtype dtype = r->fp32 ? LH_DTYPE_FP32 : plan->params.module.attention.dtype;
    LhStepShape shape = {
        .kind = r->width == WIDTH_STATS ? LH_TENSOR_NUMBERS : LH_TENSOR_HIDDEN,
        .dtype = dtype,
        .category = is_logits(role) ? LH_CATEGORY_LOGITS : LH_CATEGORY_WORKING,
        .parts = plan->segments * (r->full ? t : 1) * plan->cuts / tiles,
        .rows = (r->full ? plan->rows : plan->rows / t) / tiles,
        .width = width_of(plan, r->width, layer),
    };

    if (r->width == WIDTH_ATTENTION)
        return lh_step_attention_shape(plan, role, lh_step_layer_kind(plan, layer));
    if (r->width == WIDTH_STATS)
        shape.parts = r->gathered ? t : 1;
    if (r->last) {
        shape.parts = r->gathered ? t : 1;
        shape.rows = plan->params.module.attention.batch;
    }
    if (r->chosen) {
        shape.parts = 1;
        shape.rows = plan->rows * lh_step_choices(plan);
    }
    shape.part_bytes =
        shape.rows * (r->gathered ? t : 1) / shape.parts * shape.width * lh_dtype_bytes(dtype);
    return shape;
}

LhStepWeight
lh_step_held_weight(const LhStepPlan *plan, LhStepWeight weight)
{
    return weight == LH_STEP_W_HEAD && plan->model.tied_embeddings ? LH_STEP_W_EMBED : weight;
}

static bool
has_weight(const LhStepPlan *plan, LhStepWeight weight, uint32_t features)
{
    switch (weight) {
    case LH_STEP_W_GATE:
    case LH_STEP_W_O_NORM:
        return (features & LH_STEP_HAS_GATE) != 0;
    case LH_STEP_W_UP:
    case LH_STEP_W_DOWN:
        return (features & LH_STEP_HAS_MLP) != 0;
    case LH_STEP_W_ROUTER:
    case LH_STEP_W_EXPERT_UP:
    case LH_STEP_W_EXPERT_DOWN:
        return (features & LH_STEP_HAS_EXPERTS) != 0;
    case LH_STEP_W_HEAD:
        return !plan->model.tied_embeddings;
    default:
        return weight < LH_STEP_W_ADAPTERS || weight >= LH_STEP_W_LAYER ||
               lh_step_has_adapter(weight, features);
    }
}

LhStepMatrix
lh_step_matrix(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    const LhModel *m = &plan->model;
    const LhStepKind kind = lh_step_layer_kind(plan, layer);
    const uint32_t t = plan->params.tensor_parallel, experts = lh_step_experts(plan);
    const uint32_t features = lh_step_features(plan, layer);
    const uint64_t h = m->hidden_size, heads = width_of(plan, WIDTH_HEADS, layer);
    const uint64_t norm = h * ((features & LH_STEP_HAS_LAYER_NORM) != 0 ? 2 : 1);
    const uint32_t kv_ranks =
        kind == LH_STEP_LINEAR || m->num_query_groups >= t ? 1 : t / (uint32_t)m->num_query_groups;

    if (!has_weight(plan, weight, features))
        return (LhStepMatrix){ 0 };
    if (lh_step_adapted(weight) != weight) {
        const LhStepMatrix base = lh_step_matrix(plan, lh_step_adapted(weight), layer);

        return lh_step_adapter(&plan->params, weight, &base);
    }
    switch (weight) {
    case LH_STEP_W_NORM1:
    case LH_STEP_W_NORM2:
    case LH_STEP_W_NORM_F:
        return (LhStepMatrix){ 1, norm, t, 0 };
    case LH_STEP_W_Q:
        return (LhStepMatrix){ h, heads, 1, 0 };
    case LH_STEP_W_KV:
        return (LhStepMatrix){ h, width_of(plan, WIDTH_KV, layer), kv_ranks, 0 };
    case LH_STEP_W_GATE:
        return (LhStepMatrix){ h, heads, 1, 0 };
    case LH_STEP_W_O_NORM:
        return (LhStepMatrix){ 1, heads, 1, 0 };
    case LH_STEP_W_OUT:
        return (LhStepMatrix){ heads, h, 1, 0 };
    case LH_STEP_W_UP:
        return (LhStepMatrix){ h, width_of(plan, WIDTH_UP, layer), 1, 0 };
    case LH_STEP_W_DOWN:
        return (LhStepMatrix){ width_of(plan, WIDTH_FFN, layer), h, 1, 0 };
    case LH_STEP_W_ROUTER:
        return (LhStepMatrix){ h, experts, t, 0 };
    case LH_STEP_W_EXPERT_UP:
        return (LhStepMatrix){ experts * h, width_of(plan, WIDTH_EXPERT_UP, layer), 1, experts };
    case LH_STEP_W_EXPERT_DOWN:
        return (LhStepMatrix){ experts * width_of(plan, WIDTH_EXPERT_FFN, layer), h, 1, experts };
    case LH_STEP_W_EMBED:
    case LH_STEP_W_HEAD:
    default:
        return (LhStepMatrix){ lh_step_vocabulary(plan), h, 1, 0 };
    }
}

/* A product's columns and sums are those of one expert; its m counts all experts. */
LhKernelArgs
lh_step_product(const LhStepPlan *plan, const LhStepMatrix *matrix)
{
    LhKernelArgs args = { 0 };

    args.product.m = plan->rows * (matrix->experts > 0 ? lh_step_choices(plan) : 1);
    args.product.n = matrix->columns;
    args.product.k = matrix->rows / MAX(matrix->experts, 1);
    args.product.experts = matrix->experts;
    args.product.layout = (LhHeadsLayout){ .batch = plan->params.module.attention.batch,
                                           .members = plan->params.tensor_parallel * plan->cuts };
    return args;
}

uint32_t
lh_step_pieces(const LhStepPlan *plan)
{
    return plan->params.shard == LH_SHARD_DDP ? 1 : plan->data_ranks;
}

/* Elements are rounded up so that all-reduces divide them evenly: over tensor-parallel ranks with
 * the same weight, over data-parallel ranks that hold all of it, and over two stages. */
uint64_t
lh_step_piece_elements(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    const LhStepMatrix matrix = lh_step_matrix(plan, weight, layer);
    const uint64_t pieces = lh_step_pieces(plan);
    const uint64_t even = (uint64_t)MAX(matrix.replicas, 1) * (pieces == 1 ? plan->data_ranks : 1) *
                          (lh_step_is_shared(plan, weight) ? 2 : 1);
    const uint64_t piece = (matrix.rows * matrix.columns + pieces - 1) / pieces;

    return (piece + even - 1) / even * even;
}

/* ---- tensors of the model and of the rank ---- */

/* Trained parameters of the shard of one rank of this stage; @stepped: without those that the
 * CPU updates, or Muon. */
static uint64_t
parameters_of_shard(const LhStepPlan *plan, uint32_t stage, bool stepped)
{
    uint64_t sum = 0;

    for (unsigned w = 0; w < LH_STEP_WEIGHTS; w++) {
        const LhStepWeight weight = (LhStepWeight)w;
        const uint32_t layers = weight < LH_STEP_W_LAYER ? plan->layers : 1;

        for (uint32_t layer = 0; layer < layers; layer++) {
            if (lh_step_is_trained(&plan->params, weight) &&
                lh_step_stage_has(plan, stage, weight, layer) &&
                !(stepped && (lh_step_is_host_state(plan, stage, weight, layer) ||
                              lh_muon_has(&plan->params, weight))))
                sum += lh_step_piece_elements(plan, weight, layer);
        }
    }
    return sum;
}

/* Shape with @elements in each of @parts parts. */
static LhStepShape
shape_of(LhTensorKind kind, LhDtype dtype, LhCategory category, uint32_t parts, uint64_t elements)
{
    return (LhStepShape){
        .kind = kind,
        .dtype = dtype,
        .category = category,
        .parts = parts,
        .part_bytes = elements * lh_dtype_bytes(dtype),
    };
}

LhDtype
lh_step_gradient_dtype(const LhStepPlan *plan)
{
    return plan->params.behaviour.gradients_fp32 ? LH_DTYPE_FP32
                                                 : plan->params.module.attention.dtype;
}

bool
lh_step_has_master(const LhStepPlan *plan)
{
    return plan->params.module.attention.dtype != LH_DTYPE_FP32 &&
           !plan->params.behaviour.no_master;
}

static LhDtype
moments_dtype(const LhStepPlan *plan)
{
    const LhMoments moments = plan->params.behaviour.moments;

    if (moments == LH_MOMENTS_16BIT)
        return plan->params.module.attention.dtype;
    return moments == LH_MOMENTS_8BIT ? LH_DTYPE_INT8 : LH_DTYPE_FP32;
}

static LhStepShape
shape_of_rank(const LhStepPlan *plan, LhStepFamily family, uint32_t stage)
{
    const uint32_t parts = plan->segments * plan->params.tensor_parallel * plan->cuts;

    switch (family) {
    case LH_STEP_OF_TOKENS:
    case LH_STEP_OF_TARGETS:
        return shape_of(LH_TENSOR_TOKENS, LH_DTYPE_FP32, LH_CATEGORY_OTHER,
                        parts * plan->params.micro_batches, plan->rows / parts);
    case LH_STEP_OF_STEP_COPY:
        return shape_of(LH_TENSOR_GRADIENT, LH_DTYPE_FP32, LH_CATEGORY_OPTIMIZER, 1,
                        parameters_of_shard(plan, stage, true) * plan->params.behaviour.step_bytes /
                            4);
    case LH_STEP_OF_GRADIENT_COPY:
        return shape_of(
            LH_TENSOR_GRADIENT, plan->params.module.attention.dtype, LH_CATEGORY_GRADIENTS, 1,
            parameters_of_shard(plan, stage, false) * plan->params.behaviour.copy_bytes /
                lh_dtype_bytes(plan->params.module.attention.dtype));
    case LH_STEP_OF_FLAT_GRADIENT:
        return shape_of(LH_TENSOR_GRADIENT, lh_step_gradient_dtype(plan), LH_CATEGORY_COMMUNICATION,
                        1, parameters_of_shard(plan, stage, false) * lh_step_pieces(plan));
    case LH_STEP_OF_OTHER:
        return shape_of(LH_TENSOR_NUMBERS, LH_DTYPE_FP32, LH_CATEGORY_OTHER, 1,
                        plan->params.behaviour.other_bytes / 4);
    case LH_STEP_OF_HOST_NORM:
    case LH_STEP_OF_LOSS: /* one number, and room to divide its all-reduce evenly */
    case LH_STEP_OF_NORM:
        return shape_of(LH_TENSOR_NUMBERS, LH_DTYPE_FP32, LH_CATEGORY_OTHER, 1,
                        lh_step_ranks(&plan->params));
    default:
        return shape_of(LH_TENSOR_NUMBERS, LH_DTYPE_FP32, LH_CATEGORY_OTHER, 1, 1);
    }
}

/* Size given by the framework, of a layer or per logit, rounded up to whole elements. */
static LhStepShape
shape_of_unfused(const LhStepPlan *plan, const LhStepTensor *tensor)
{
    const bool of_loss = tensor->what == LH_STEP_W_HEAD;
    LhStepShape shape =
        lh_step_role_shape(plan, of_loss ? LH_STEP_DLOGITS_FP32 : LH_STEP_X1, tensor->layer);
    const uint64_t each = lh_dtype_bytes(shape.dtype);
    const uint64_t bytes =
        of_loss ? shape.part_bytes / each * plan->params.behaviour.unfused_loss
                : (lh_step_layer_beside_bytes(plan, tensor->layer) + shape.parts - 1) / shape.parts;

    shape.part_bytes = (bytes + each - 1) / each * each;
    return shape;
}

LhStepShape
lh_step_tensor_shape(const LhStepPlan *plan, const LhStepTensor *tensor)
{
    const LhDtype activation = plan->params.module.attention.dtype;
    const LhDtype gradient = lh_step_gradient_dtype(plan);
    uint64_t elements;

    if (tensor->family == LH_STEP_OF_ROLE || tensor->family == LH_STEP_OF_HOST)
        return lh_step_role_shape(plan, (LhStepRole)tensor->what, tensor->layer);
    if (tensor->family == LH_STEP_OF_RESULT) {
        LhStepShape shape = lh_step_role_shape(plan, (LhStepRole)tensor->what, tensor->layer);

        shape.parts *= plan->params.micro_batches;
        if (tensor->what == LH_STEP_KV)
            shape.category = LH_CATEGORY_CACHE;
        return shape;
    }
    if (tensor->family == LH_STEP_OF_UNFUSED || tensor->family == LH_STEP_OF_HOST_UNFUSED)
        return shape_of_unfused(plan, tensor);
    if (tensor->family >= LH_STEP_OF_STEP_COPY)
        return shape_of_rank(plan, (LhStepFamily)tensor->family, tensor->stage);
    elements = lh_step_piece_elements(plan, (LhStepWeight)tensor->what, tensor->layer);
    switch (tensor->family) {
    case LH_STEP_OF_WEIGHT:
        return shape_of(LH_TENSOR_WEIGHT, activation,
                        tensor->stays ? LH_CATEGORY_WEIGHTS : LH_CATEGORY_COMMUNICATION,
                        lh_step_pieces(plan), elements);
    case LH_STEP_OF_WEIGHT_SHARD:
    case LH_STEP_OF_HOST_WEIGHT:
        return shape_of(LH_TENSOR_WEIGHT, activation, LH_CATEGORY_WEIGHTS, 1, elements);
    case LH_STEP_OF_GRADIENT:
        return shape_of(LH_TENSOR_GRADIENT, gradient, LH_CATEGORY_GRADIENTS, lh_step_pieces(plan),
                        elements);
    case LH_STEP_OF_GRADIENT_SUM:
        return shape_of(LH_TENSOR_GRADIENT, gradient, LH_CATEGORY_COMMUNICATION, 1, elements);
    case LH_STEP_OF_MASTER:
        return shape_of(LH_TENSOR_MASTER, LH_DTYPE_FP32, LH_CATEGORY_OPTIMIZER, 1, elements);
    case LH_STEP_OF_MOMENTS:
        return shape_of(LH_TENSOR_MOMENTS, moments_dtype(plan), LH_CATEGORY_OPTIMIZER, 1,
                        2 * elements);
    case LH_STEP_OF_SCALES:
        return shape_of(LH_TENSOR_NUMBERS, LH_DTYPE_FP32, LH_CATEGORY_OPTIMIZER, 1,
                        lh_moment_scales(elements));
    case LH_STEP_OF_MOMENTUM:
        return shape_of(LH_TENSOR_MOMENTS, moments_dtype(plan), LH_CATEGORY_OPTIMIZER, 1, elements);
    case LH_STEP_OF_GRADIENT_SHARD:
    case LH_STEP_OF_HOST_GRADIENT:
    case LH_STEP_OF_HOST_GRADIENT_SUM:
        return shape_of(LH_TENSOR_GRADIENT, gradient, LH_CATEGORY_GRADIENTS, 1, elements);
    default:
        return lh_muon_shape(plan, tensor);
    }
}
