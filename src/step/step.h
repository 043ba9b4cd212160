/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training steps: programs that hold everything a step does, from the tokens to the optimizer, with
 * the schedules of attention embedded as they are. A step is an LhProgram like any other.
 *
 *     graph.c            a layer as a table: which kernel makes what of what, forward and backward
 *     layer_info.c       what can be asked about a step without its program
 *     tensor_sizes.c     rows, widths and bytes of everything that the table names
 *     modules.c          the attention of a layer as embedded programs, forward and backward
 *     pipeline.c         which stage works on what, and when stages exchange rows and gradients
 *     stage_calls.c      one micro-batch, written down call by call (recorder.c) ...
 *     table_rows.c       ... row by row; what recomputation does follows from what is kept
 *     kernel_args.c      the arguments of the kernel that a row calls
 *     sharding.c         weights and gradients: who holds, gathers and reduces them
 *     optimizer_calls.c  who updates them
 *     liveness.c         when each tensor comes and goes, and which slot it lies in
 *     sync_edges.c       what calls on different streams must wait for
 *     call_ops.c         the calls as ops of a rank
 *     peak_memory.c      the most that is held at a time, without the ops
 *     formulas.c         parameters, flops and bytes, computed from the model alone
 *     behaviour.c        what frameworks do
 *     legality.c         which steps there are
 *
 * Ranks are numbered tensor parallel first, then context parallel, data parallel and pipeline
 * stages: rank = t + tensor_parallel (c + context_parallel (d + data_parallel s)).
 */
#pragma once

#include "model/framework.h"
#include "model/model.h"
#include "sched/schedule.h"

/* How a framework does what the model leaves open. Traffic is in bytes moved for each element of
 * the forward pass's result; its gradient moves twice as much. 0: every operand once. */
typedef struct {
    bool unit_is_model;   /* FSDP gathers the whole model at once, not layer by layer */
    bool halves;          /* FSDP: what is before and behind attention is called apart */
    bool reshard;         /* FSDP: gathered weights go after the forward pass of their unit */
    uint32_t prefetch;    /* FSDP: units that are gathered ahead of the one that works */
    bool overlap_reduce;  /* gradients are reduced while the backward pass goes on */
    bool reduce_each;     /* in every micro-batch; else in the last one (FSDP, ZeRO-2) */
    bool gradients_stay;  /* buffers of gradients are there for the whole step */
    bool overlap_tensor;  /* tensor parallel: gradients of inputs travel while those of weights are
                             computed */
    bool gather_again;    /* tensor parallel: gathered inputs of products are not kept for the
                             gradients of their weights */
    uint32_t copy_bytes;  /* DDP: of copies of each gradient that are there for the whole step */
    bool gradients_fp32;  /* gradients are kept and reduced in fp32; else as activations are */
    bool logits_fp32;     /* the loss works on a copy of the logits in fp32 */
    bool logits_stay;     /* ... and both are there until their gradient is cast to 16 bits */
    uint32_t step_bytes;  /* of each parameter of a shard, for the time of the optimizer's step */
    uint64_t other_bytes; /* held beside all this, on every rank */
    uint32_t norm_traffic, rotary_traffic, glu_traffic, activation_traffic, residual_traffic;
    uint32_t unfused_bytes;     /* of the hidden state, written and kept by each layer */
    uint32_t unfused_loss;      /* of a logit, beside what the tables name */
    uint32_t loss_traffic;      /* for each logit */
    uint32_t optimizer_traffic; /* for each parameter */
    double clip;                /* the largest norm of the gradients; 0: any */
} LhStepBehaviour;

/* What no framework and no model says of norms and of Adam. */
#define LH_STEP_NORM_EPSILON 1e-5
#define LH_STEP_ADAM_EPSILON 1e-8
#define LH_STEP_BETA1 0.9
#define LH_STEP_BETA2 0.95

/* In which order the stages of a pipeline work on micro-batches. */
typedef enum {
    LH_PIPELINE_1F1B,  /* one forward, one backward; interleaved where a stage has several chunks */
    LH_PIPELINE_GPIPE, /* all forward, then all backward */
    LH_PIPELINE_ORDERS
} LhPipelineOrder;

/* Programs of attention, forward and backward, by kind of layer (graph.h). NULL: the model has none
 * of the kind. */
#define LH_STEP_KINDS_MAX 3
typedef struct {
    LhProgram *pass[LH_STEP_KINDS_MAX][2];
} LhStepAttention;

/* Everything that decides the program of a step. */
typedef struct {
    const LhModel *model; /* borrowed for the call; heads and widths as they are run, padded */
    const LhSchedule *schedule[LH_LAYER_KINDS]; /* of softmax and linear attention; NULL where the
                                                   model has no such layer */
    /*
     * Attention of one micro-batch over one context-parallel group: `ranks` is the context-parallel
     * size, heads and groups are the model's (all of them), the batch is the micro-batch's, the
     * mask that of layers that see the whole sequence. Options are the schedules'.
     */
    LhProgramParams module;
    uint64_t window;          /* of layers with a sliding window; 0: none has one */
    uint32_t tensor_parallel; /* with sequence parallelism */
    uint32_t data_parallel;
    uint32_t
        pipeline_parallel; /* stages, each of which has its share of the layers; 0 and 1: one */
    /* Chunks of layers that a stage has: chunk c of stage s is the (c x stages + s)-th of all; 0
     * and 1: one. */
    uint32_t chunks;
    /* Where layers are shared among chunks, the embedding counts as a layer of the first chunk of
     * all, the head and the loss as one of the last chunk. */
    bool embedding_counts, loss_counts;
    LhPipelineOrder pipeline_order;
    uint32_t micro_batches; /* of a data-parallel rank, one after the other */
    LhShard shard;
    LhCheckpoint checkpoint;
    LhStepBehaviour behaviour;
    double learning_rate;
    /* Stands for what the schedules would make; borrowed, and lives as long as the program. NULL:
     * what they make. */
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

/* The ranks of one stage, which follow one another; all ranks. */
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

/* Makes its program. Refusals are LH_ERROR_NO. Caller frees. */
LhProgram *lh_step_new(const LhStepParams *params, GError **error);

/*
 * The attention of a step alone: what lh_step_new() would embed. Each program is that of one layer,
 * on the heads of one tensor-parallel rank and the ranks of one context-parallel group. Refusals
 * are LH_ERROR_NO. Caller clears.
 */
bool lh_step_attention(const LhStepParams *params, LhStepAttention *attention, GError **error);

/* What a program of a step was made with, or NULL for any other program. Its model is a copy of
 * what the builder needs of it: strings are NULL. */
const LhStepParams *lh_step_params(const LhProgram *program);

/* Streams of the programs of steps. */
typedef enum {
    LH_STEP_STREAM_COMPUTE,
    LH_STEP_STREAM_TENSOR,
    LH_STEP_STREAM_GATHER,
    LH_STEP_STREAM_SCATTER,
    LH_STEP_STREAM_PIPELINE, /* of a pipeline only */
    LH_STEP_STREAMS,         /* the module's own come behind */
} LhStepStream;

/* The dimension of parallelism that an op of a step communicates for (lh_step_dimension()). */
typedef enum {
    LH_DIMENSION_TENSOR,
    LH_DIMENSION_CONTEXT,  /* attention */
    LH_DIMENSION_DATA,     /* weights and gradients, over data- and context-parallel ranks */
    LH_DIMENSION_PIPELINE, /* rows and their gradients, between stages; those of a shared matrix */
    LH_DIMENSIONS          /* none: it computes */
} LhDimension;
