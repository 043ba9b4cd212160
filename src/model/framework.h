/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training frameworks: how a public framework runs a step. What it shards and prefetches, element
 * types of gradients, memory traffic of its small kernels, and overheads in time and memory that no
 * formula explains. All of it is data: a framework is a file, frameworks/NAME.json
 * (longhaul.framework/1), in which every value has its provenance and source.
 */
#pragma once

#include "base/json/json.h"

#define LH_OVERHEAD_MAX_S 1000

/* Provenance of a value, most trustworthy first. */
typedef enum {
    LH_ORIGIN_MEASURED,  /* measured on this framework */
    LH_ORIGIN_CODE,      /* read in the framework's public code */
    LH_ORIGIN_DATASHEET, /* stated by its authors: documentation, a paper */
    LH_ORIGIN_FITTED,    /* chosen to reproduce published rows, which the source names */
    LH_ORIGIN_ASSUMED,   /* by analogy, or absent from the file */
    LH_ORIGINS,
} LhOrigin;

/* What is sharded over the ranks that would hold copies of the same weights. */
typedef enum {
    LH_SHARD_DDP,   /* nothing: gradients are all-reduced */
    LH_SHARD_ZERO1, /* optimizer states; gradients are reduce-scattered, weights gathered */
    LH_SHARD_ZERO2, /* also gradients, as they are computed */
    LH_SHARD_FSDP,  /* also weights (ZeRO-3) */
    LH_SHARDS,
} LhShard;

/* What is kept of a layer's forward pass; the rest is recomputed before its backward pass. */
typedef enum {
    LH_CHECKPOINT_NONE,      /* everything that the backward pass reads */
    LH_CHECKPOINT_SELECTIVE, /* all but attention's outputs */
    LH_CHECKPOINT_LAYER,     /* the layer's input (Hugging Face, Megatron-LM full) */
    LH_CHECKPOINT_REMAT,     /* the layer's input and attention's outputs (LightSeq) */
    LH_CHECKPOINTS,
} LhCheckpoint;

/* How the loss is computed. A loss in chunks takes the head's product with it: some of the rank's
 * rows have logits at a time. */
typedef enum {
    LH_LOSS_EAGER,        /* kernel by kernel, with the copies that the framework states */
    LH_LOSS_FUSED,        /* one kernel, whose gradient takes the place of 16-bit logits */
    LH_LOSS_CHUNKED,      /* in chunks, whose logits are computed again for their gradient (TRL) */
    LH_LOSS_TILED,        /* in chunks, each with its gradient behind its loss (ALST, torchtitan) */
    LH_LOSS_FUSED_LINEAR, /* as tiled, by the fused kernel (Liger) */
    LH_LOSSES
} LhLoss;

typedef enum {
    LH_FSDP_LAYER, /* each layer is gathered, freed and reduced separately; the rest is one unit */
    LH_FSDP_MODEL, /* all weights are one unit */
} LhFsdpUnit;

/* Element type: that of activations (16 bits), or fp32. */
typedef enum {
    LH_TYPE_ACTIVATION,
    LH_TYPE_FP32,
} LhStateType;

/* Element type of each of Adam's moments. */
typedef enum {
    LH_STATE_ACTIVATION, /* as LhStateType */
    LH_STATE_FP32,
    LH_STATE_8BIT, /* codes in blocks of 256 with an fp32 scale each */
} LhMomentsType;

/* NULL-terminated, indexed by the enums above. */
extern const char *const lh_origin_names[];
extern const char *const lh_shard_names[];
extern const char *const lh_checkpoint_names[];
extern const char *const lh_loss_names[];
extern const char *const lh_fsdp_unit_names[];
extern const char *const lh_state_type_names[];
extern const char *const lh_moments_type_names[];

/* One value of a framework, for reports. */
typedef struct {
    const char *group, *name; /* "fsdp", "prefetch"; static */
    const char *description;  /* static */
    char *text;               /* the value as printed in reports */
    LhOrigin origin;
    char *source; /* NULL: the file does not state the value, and this is the default */
} LhFrameworkFact;

typedef struct {
    char *name;
    char *description;
    char *source; /* code and version that it describes */

    /* FSDP and ZeRO-3. */
    int fsdp_unit; /* LhFsdpUnit */
    /* Units gathered ahead of the one that computes; 0: a gather starts when the previous unit has
     * finished, so it is fully exposed. */
    uint64_t fsdp_prefetch;
    /* Gathered weights are freed after the forward pass and gathered again. */
    bool fsdp_reshard;
    /* A layer's two halves are called separately: a layer that is recomputed is gathered twice in
     * each pass. */
    bool fsdp_halves;
    int fsdp_gradient_reduce;           /* LhStateType: of the reduce-scattered gradients */
    bool fsdp_reduce_every_micro_batch; /* false: only after the last one */
    double fsdp_overhead_s;             /* seconds of host time per step */
    /* Replicated weights: DDP, and ZeRO-1 and 2. */
    bool ddp_overlap;          /* gradient reduction overlaps the backward pass */
    uint64_t ddp_bucket_bytes; /* bytes of gradients per bucket; 0: one bucket */
    int ddp_gradient_reduce;   /* LhStateType */
    bool ddp_bucket_copies;    /* buckets are copies in addition to the gradients */
    /* ZeRO-1 and 2: the weight all-gather overlaps the next forward pass. */
    bool zero_gather_overlap;
    /* Bytes per parameter: 2 for the weight used in computation, 4 for a master copy, two moments,
     * the gradient, and memory that exists only during the optimizer step. */
    bool states_master;
    int states_moments;  /* LhMomentsType of each of the two */
    int states_gradient; /* LhStateType of stored gradients */
    /* Per parameter that the rank updates; > 0: a copy made for the optimizer step. */
    double states_step_bytes;
    int states_checkpoint; /* LhCheckpoint: the default of scenarios */
    int states_alone;      /* LhStateType: types of states with one data-parallel rank */
    int states_shard;      /* LhShard: the default of scenarios */
    /* Forward memory traffic of small kernels, bytes read and written per 16-bit element; the
     * backward pass has twice that. Loss and optimizer: traffic of the whole step. */
    double kernels_norm;       /* per element of the hidden state */
    double kernels_rotary;     /* per element of q and k */
    double kernels_glu;        /* per element of the inner width: act(gate) x up */
    double kernels_activation; /* per element of the inner width, for MLPs without a gate */
    double kernels_residual;   /* per element of the hidden state: x + y */
    /* Per element of the hidden state, once per layer: written by other, unfused kernels for the
     * backward pass, and held until then (step/memory/liveness.c). */
    double kernels_unfused;
    double kernels_norm_kept, kernels_glu_kept;
    double kernels_loss;          /* per logit */
    double kernels_optimizer;     /* per parameter that the rank updates */
    double kernels_cpu_optimizer; /* of the host's memory, per parameter that its CPU updates */
    /* Private: lh_framework_touched_bytes() with the states that this applies to. */
    double kernels_optimizer_touched;
    /* Per element of a block's output that is added to a part of a sum. */
    double kernels_merge_slice;
    bool kernels_fused_qkv;  /* q, k and v are one matrix product */
    bool kernels_fused_gate; /* gate and up are one matrix product */
    /* Work around every call of a softmax attention kernel, where the program does not contain it
     * (sim/cost/call_cost.h). */
    bool call_gather;     /* inputs are first gathered by index */
    bool call_pad;        /* outputs are scattered by index into zeros */
    double call_slowdown; /* slowdown of a copy by index relative to one in order; >= 1 */
    double call_host_s;   /* seconds of host time, in addition to the launch */
    /* Memory per logit while the loss is computed, bytes: a rank holds the sum. */
    double logits_activation_bytes; /* as the head writes them */
    double logits_fp32_bytes;       /* cast for the loss */
    double logits_softmax_bytes;    /* kept for backward */
    double logits_gradient_bytes;   /* held in addition to the others */
    int logits_loss;                /* LhLoss: the default of scenarios */
    uint64_t
        logits_chunk_rows;     /* of its chunks; 0: by the rule of the kind (step/memory/tiles.h) */
    int logits_chunk_products; /* LhStateType: of the head's products of chunks (loss chunked) */
    /* Tensor parallelism with sequence parallelism, Megatron-LM's. */
    bool tp_overlap_gather;  /* the backward pass gathers x while dgrad runs */
    bool tp_overlap_scatter; /* the reduce-scatter of dx runs while wgrad runs */
    /* The host. */
    uint64_t memory_other_bytes; /* memory in addition to tensors: buffers, workspaces */
    /* Library of attention kernels, on devices that have it; NULL: the device's own. */
    char *attention_kernel;

    GArray *facts;    /* of LhFrameworkFact: all values above, in order */
    GArray *remedies; /* of LhFrameworkRemedy (framework_remedies.h); NULL: none */
    char *sha256;
    int schema; /* version of longhaul.framework, from 0 */
} LhFramework;

/* Reads @name: a name (a file of frameworks/) or a path. Caller frees. */
LhFramework *lh_framework_load(const char *name, GError **error);
LhFramework *lh_framework_parse(const char *file, const char *text, gsize length, GError **error);
void lh_framework_free(LhFramework *framework);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhFramework, lh_framework_free)

/* The value of @key, "ddp.overlap", as printed in reports; NULL: unknown key. Borrowed. */
const char *lh_framework_text(const LhFramework *framework, const char *key);

/* Sets the value of @key (a flag, number or choice) to @text, with @source as its source; false if
 * the key or the value is invalid. */
bool lh_framework_set(LhFramework *framework, const char *key, const char *text,
                      const char *source);

/* A framework of defaults only: ZeRO's paper for states, no overlap, fused kernels. Caller
 * frees. */
LhFramework *lh_framework_new(void);

/* Bytes per logit while the loss is computed: the sum of the four parts. */
double lh_framework_logit_bytes(const LhFramework *framework);

/* The field table of longhaul.framework/1, for its schema. It describes a struct that stores each
 * value with provenance and source, so it does not decode LhFramework. */
const LhField *lh_framework_fields(void);
