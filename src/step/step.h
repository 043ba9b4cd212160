/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training steps: programs of a whole step, from the tokens to the optimizer, in which the
 * schedules' attention programs are embedded unchanged. A step is an LhProgram like any other. It
 * may also be the forward pass alone (prefill).
 *
 *     graph.c            a layer as a table of kernels and their operands, forward and backward
 *     layer_info.c       queries about a step that do not need its program
 *     tensor_sizes.c     rows, widths and bytes of everything in the tables
 *     lora.c             LoRA: adapters, and which weights are trained
 *     modules.c          the attention of a layer as embedded programs, forward and backward
 *     packs.c            packed documents, which may differ between micro-batches
 *     pipeline/          work of each pipeline stage, exchanges of rows and gradients,
 *                        micro-batches that repeat
 *     memory/            live ranges, peaks, what is kept, recomputed, offloaded; loops over tiles
 *     stage_calls.c      records one micro-batch call by call (recorder.c) ...
 *     table_rows.c       ... row by row; recomputation follows from what is kept
 *     kernel_args.c      arguments of the kernel that a row calls
 *     sharding.c         weights and gradients: which ranks hold, gather and reduce them
 *     optimizer_calls.c  the optimizer's calls
 *     muon/              Muon: matrices, their ranks, calls
 *     sync_edges.c       what calls on different streams wait for
 *     call_forms.c       calls that differ only in which of equal tensors they touch
 *     call_ops.c         turns calls into ops of a rank
 *     formulas.c         parameters, flops and bytes, computed from the model alone
 *     behaviour.c        behaviour of frameworks
 *     legality.c         which steps are possible
 *
 * Ranks are numbered by tensor, context, data and pipeline parallelism, the first fastest: rank = t
 * + tensor_parallel (c + context_parallel (d + data_parallel s)).
 */
#pragma once

#include "model/framework.h"
#include "model/model.h"
#include "model/recomputation.h"
#include "sched/schedule.h"
#include "step/muon/muon_params.h"

/* Element type of each of Adam's two moments. */
typedef enum {
    LH_MOMENTS_FP32,
    LH_MOMENTS_16BIT, /* the type of activations */
    LH_MOMENTS_8BIT,  /* codes in blocks with an fp32 scale each (kernels/sizes.h) */
    LH_MOMENTS
} LhMoments;

/* Framework behaviour that the model leaves open. Traffic is in bytes moved per element of the
 * forward pass's result; the gradient moves twice as much. 0: every operand is moved once. */
typedef struct {
    bool unit_is_model; /* FSDP gathers the whole model at once, not layer by layer */
    bool halves;        /* FSDP: the parts before and after attention are called separately */
    /* FSDP: gathered weights are freed after the forward pass of their unit. */
    bool reshard;
    uint32_t prefetch;   /* FSDP: units gathered ahead of the current one */
    bool overlap_reduce; /* gradients are reduced during the backward pass */
    bool reduce_each;    /* in every micro-batch; else in the last one (FSDP, ZeRO-2) */
    bool gradients_stay; /* gradient buffers are live for the whole step */
    /* Tensor parallel: communication of input gradients overlaps with weight gradients. */
    bool overlap_tensor;
    /* Tensor parallel: gathered inputs of products are gathered again for weight gradients. */
    bool gather_again;
    /* DDP: bytes of copies of each gradient that are live for the whole step. */
    uint32_t copy_bytes;
    /* Gradients are kept and reduced in fp32; else in the type of activations. */
    bool gradients_fp32;
    /* 16-bit weights are updated themselves, without an fp32 copy. */
    bool no_master;
    LhMoments moments;
    bool logits_fp32;     /* the loss works on an fp32 copy of the logits */
    bool logits_stay;     /* ... and both are live until the logits' gradient is cast to 16 bits */
    uint32_t step_bytes;  /* per parameter of a shard, during the optimizer's step */
    uint64_t other_bytes; /* further memory on every rank */
    uint32_t norm_traffic, rotary_traffic, glu_traffic, activation_traffic, residual_traffic;
    /* Per element of the hidden state, written and kept by each layer. */
    uint32_t unfused_bytes;
    /* Kept by each layer: per element of the inputs of its RMS norms, and of the gated product. */
    uint32_t norm_kept_bytes, glu_kept_bytes;
    bool head_fp32;                 /* the head's products are computed in fp32 */
    uint32_t unfused_loss;          /* per logit, in addition to the tables */
    uint32_t loss_traffic;          /* per logit */
    uint32_t optimizer_traffic;     /* per parameter */
    uint32_t cpu_optimizer_traffic; /* likewise, of the host's memory */
    double clip;                    /* largest norm of the gradients; 0: no clipping */
} LhStepBehaviour;

#define LH_STEP_OFFLOAD_ALL UINT32_MAX

/* Constants of norms and Adam that neither framework nor model gives. */
#define LH_STEP_NORM_EPSILON 1e-5
#define LH_STEP_ADAM_EPSILON 1e-8
#define LH_STEP_BETA1 0.9
#define LH_STEP_BETA2 0.95

/* Matrices that have an adapter under LoRA, by Megatron's names; bits. */
typedef enum {
    LH_LORA_QKV = 1 << 0,  /* linear_qkv: q, k and v, with one A */
    LH_LORA_PROJ = 1 << 1, /* linear_proj: the output of attention */
    LH_LORA_FC1 = 1 << 2,  /* linear_fc1: the first matrix of the MLP */
    LH_LORA_FC2 = 1 << 3,  /* linear_fc2 */
    LH_LORA_ALL = (1 << 4) - 1
} LhLoraTargets;

/* Order in which pipeline stages work on micro-batches. */
typedef enum {
    LH_PIPELINE_1F1B,  /* one forward, one backward; interleaved if a stage has several chunks */
    LH_PIPELINE_GPIPE, /* all forward, then all backward */
    LH_PIPELINE_ORDERS
} LhPipelineOrder;

/* Attention programs, forward and backward, by kind of layer (graph.h). NULL: the model has no such
 * layer, or the step no such pass. */
#define LH_STEP_KINDS_MAX 3
typedef struct {
    LhProgram *pass[LH_STEP_KINDS_MAX][2];
} LhStepAttention;

/* Parameters that determine the program of a step. */
typedef struct {
    const LhModel *model; /* borrowed for the call; padded heads and widths */
    /* For softmax and for linear attention; NULL if the model has no such layer. */
    const LhSchedule *schedule[LH_LAYER_KINDS];
    /*
     * Attention of one micro-batch over one context-parallel group. `ranks` is the context-parallel
     * size; heads and groups are those of the whole model; the batch is a micro-batch's; the mask
     * is that of layers without a window. Options are the schedules'.
     */
    LhProgramParams module;
    /*
     * Packs that differ: micro-batch m of data-parallel rank d has pack d x micro_batches + m, in
     * all its sequences. NULL: all have the documents of module.mask, which otherwise are those of
     * the first pack.
     */
    const LhDocumentPack *packs;
    uint32_t packs_count;
    uint64_t window;          /* of layers with a sliding window; 0: none */
    uint32_t tensor_parallel; /* with sequence parallelism */
    uint32_t data_parallel;
    uint32_t pipeline_parallel; /* stages, each with an equal share of the layers; 0 and 1: one */
    /* Chunks of layers per stage: chunk c of stage s is chunk (c x stages + s) of the model; 0 and
     * 1: one. */
    uint32_t chunks;
    /* Whether, when layers are divided among chunks, the embedding counts as a layer of the first
     * chunk, and the head and the loss as one of the last. */
    bool embedding_counts, loss_counts;
    LhPipelineOrder pipeline_order;
    uint32_t micro_batches; /* of a data-parallel rank, one after another */
    /* The forward pass alone (prefill): no loss, gradients and optimizer. What stays are the keys
     * and values of all layers, and logits of each sequence's last token. Shard is ddp or fsdp,
     * checkpoint none, without meaning. */
    bool forward_only;
    bool unrepeated; /* record every micro-batch of a pipeline, without repetition */
    LhShard shard;
    LhCheckpoint checkpoint;
    LhRecompute recompute;
    LhLoss loss;
    /* Rows of a rank that have logits at a time, at most, if the loss is in chunks; 0: by the rule
     * of the kind of loss (tiles.h). */
    uint64_t loss_chunk_rows;
    /* Rows of a tile of the MLP, at most; backward, each tile is computed again (ALST,
     * arXiv 2506.13996). 0: the MLP is not tiled. */
    uint64_t mlp_tile_rows;
    /* The first so many layers of each chunk keep their activations in host memory between forward
     * and backward pass (offload.c); LH_STEP_OFFLOAD_ALL: all layers. */
    uint32_t offload_layers;
    /* Share of the trained parameters whose optimizer states are in host memory, where the CPU
     * updates them (host_states.c); 0: none. */
    double optimizer_offload;
    /* Updated weights are copied back one by one; else all of them, behind all updates. */
    bool overlap_optimizer_copies;
    /* Their gradients go to the host when they have been reduced; else when the optimizer runs. */
    bool gradients_leave;
    /* The host has the weights, too: all of them, with all optimizer states. */
    bool offload_param;
    /* LoRA (arXiv 2106.09685): only adapters of this rank are trained, of the targets; all other
     * weights are frozen. 0: all weights are trained. */
    uint32_t lora_rank;
    uint32_t lora_targets; /* LhLoraTargets */
    LhMuonParams muon;
    LhStepBehaviour behaviour;
    double learning_rate;
    /* Replaces the attention programs that the schedules would make; borrowed for the life of the
     * program. NULL: the schedules make them. */
    const LhStepAttention *attention;
} LhStepParams;

static inline uint32_t
lh_step_stages(const LhStepParams *p)
{
    return MAX(p->pipeline_parallel, 1);
}

static inline uint32_t
lh_step_chunks(const LhStepParams *p)
{
    return MAX(p->chunks, 1);
}

/* Whether the loss is in chunks; its gradient takes the place of the logits; the logits of a chunk
 * are computed again for their gradient. */
static inline bool
lh_step_loss_in_chunks(const LhStepParams *p)
{
    return p->loss >= LH_LOSS_CHUNKED;
}

static inline bool
lh_step_loss_in_place(const LhStepParams *p)
{
    return p->loss == LH_LOSS_FUSED || p->loss == LH_LOSS_FUSED_LINEAR;
}

static inline bool
lh_step_loss_again(const LhStepParams *p)
{
    return p->loss == LH_LOSS_CHUNKED;
}

/* Ranks of one stage, which are consecutive; and all ranks. */
static inline uint64_t
lh_step_stage_ranks(const LhStepParams *p)
{
    return (uint64_t)p->tensor_parallel * p->module.ranks * p->data_parallel;
}

static inline uint64_t
lh_step_ranks(const LhStepParams *p)
{
    return lh_step_stage_ranks(p) * lh_step_stages(p);
}

/* Makes the program of a step. LH_ERROR_NO if the step is not possible. Caller frees. */
LhProgram *lh_step_new(const LhStepParams *params, GError **error);

/*
 * Makes only the attention programs that lh_step_new() would embed. Each is for one layer, the
 * heads of one tensor-parallel rank and the ranks of one context-parallel group. LH_ERROR_NO if the
 * step is not possible. Caller clears.
 */
bool lh_step_attention(const LhStepParams *params, LhStepAttention *attention, GError **error);

/* Parameters that a step's program was made with; NULL for any other program. The model is a copy
 * of what the builder needs; its strings are NULL. */
const LhStepParams *lh_step_params(const LhProgram *program);

/* Streams of a step's program. */
typedef enum {
    LH_STEP_STREAM_COMPUTE,
    LH_STEP_STREAM_TENSOR,
    LH_STEP_STREAM_GATHER,
    LH_STEP_STREAM_SCATTER,
    LH_STEP_STREAM_PIPELINE, /* only with pipeline parallelism */
    LH_STEP_STREAM_TO_HOST,  /* with offload; without a pipeline their indices in the program are */
    LH_STEP_STREAM_FROM_HOST, /* lower by one */
    LH_STEP_STREAM_CPU,       /* with offload of optimizer states: kernels on the host's CPU */
    LH_STEP_STREAMS,          /* the attention programs' own streams follow */
} LhStepStream;

/* Dimension of parallelism that an op of a step communicates for (lh_step_dimension()). */
typedef enum {
    LH_DIMENSION_TENSOR,
    LH_DIMENSION_CONTEXT, /* attention */
    LH_DIMENSION_DATA,    /* weights and gradients, over data- and context-parallel ranks */
    /* Rows and their gradients between stages; gradients of a matrix that two stages share. */
    LH_DIMENSION_PIPELINE,
    LH_DIMENSIONS /* none: a compute op */
} LhDimension;

/* What the exposed time of a rank may be charged to: a dimension, or copies between device and
 * host. */
#define LH_EXPOSED_OFFLOAD LH_DIMENSIONS
#define LH_STEP_EXPOSED (LH_DIMENSIONS + 1)
