/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a public training system runs a step: what it shards and prefetches, in which type gradients
 * travel and are kept, how many bytes its small kernels move, what it adds to time and memory that
 * no formula explains. None of it is code here: a system is a file, frameworks/NAME.json
 * (longhaul.framework/1), and every value in it says where it comes from.
 */
#pragma once

#include "base/json/json.h"

#define LH_OVERHEAD_MAX_S 1000

/* Where a value comes from, the most trustworthy first. */
typedef enum {
    LH_ORIGIN_MEASURED,  /* of this very thing */
    LH_ORIGIN_CODE,      /* read in the system's public code */
    LH_ORIGIN_DATASHEET, /* stated by those who made it: documentation, a paper */
    LH_ORIGIN_FITTED,    /* chosen so that published rows come out; the source names them */
    LH_ORIGIN_ASSUMED,   /* by analogy, or left out of the file */
    LH_ORIGINS,
} LhOrigin;

/* What the ranks that hold copies of the same weights cut among them. */
typedef enum {
    LH_SHARD_DDP,   /* nothing: gradients are all-reduced */
    LH_SHARD_ZERO1, /* states of the optimizer; gradients are reduce-scattered, weights gathered */
    LH_SHARD_ZERO2, /* and gradients, as they come */
    LH_SHARD_FSDP,  /* and weights (ZeRO-3) */
    LH_SHARDS,
} LhShard;

/* What is kept of a layer's forward pass; the rest is computed again before its backward pass. */
typedef enum {
    LH_CHECKPOINT_NONE,      /* everything that backward reads */
    LH_CHECKPOINT_SELECTIVE, /* all but what attention writes */
    LH_CHECKPOINT_LAYER,     /* the layer's input (Hugging Face, Megatron-LM full) */
    LH_CHECKPOINT_REMAT,     /* the layer's input and what attention writes (LightSeq) */
    LH_CHECKPOINTS,
} LhCheckpoint;

typedef enum {
    LH_FSDP_LAYER, /* each layer is gathered, freed and reduced for itself; the rest is one unit */
    LH_FSDP_MODEL, /* all weights are one unit */
} LhFsdpUnit;

/* The type of something that is as activations are (16 bits), or fp32. */
typedef enum {
    LH_TYPE_ACTIVATION,
    LH_TYPE_FP32,
} LhStateType;

/* NULL-terminated, indexed by the enums above. */
extern const char *const lh_origin_names[];
extern const char *const lh_shard_names[];
extern const char *const lh_checkpoint_names[];
extern const char *const lh_fsdp_unit_names[];
extern const char *const lh_state_type_names[];

/* One value of a framework, for reports. */
typedef struct {
    const char *group, *name; /* "fsdp", "prefetch"; static */
    const char *description;  /* static */
    char *text;               /* the value as people read it */
    LhOrigin origin;
    char *source; /* NULL: the file does not state the value, and this is the default */
} LhFrameworkFact;

typedef struct {
    char *name;
    char *description;
    char *source; /* what it stands for: which code, which version */

    /* FSDP and ZeRO-3. */
    int fsdp_unit;            /* LhFsdpUnit */
    uint64_t fsdp_prefetch;   /* units gathered ahead of the one that computes; 0: a gather
                                 begins when the unit before is through, so all of it shows */
    bool fsdp_reshard;        /* gathered weights are freed after forward, gathered again */
    bool fsdp_halves;         /* a layer's two halves are called apart: a layer that is
                                 recomputed is gathered twice in each pass */
    int fsdp_gradient_reduce; /* LhStateType: of the gradients that are reduce-scattered */
    bool fsdp_reduce_every_micro_batch; /* else the last one's */
    double fsdp_overhead_s;             /* seconds of a step that go to its host code */
    /* Replicated weights: DDP, and ZeRO-1 and 2. */
    bool ddp_overlap;          /* buckets are reduced beside the backward pass */
    uint64_t ddp_bucket_bytes; /* of gradients; 0: one bucket */
    int ddp_gradient_reduce;   /* LhStateType */
    bool ddp_bucket_copies;    /* buckets are beside the gradients, not their memory */
    bool zero_gather_overlap;  /* ZeRO-1 and 2: weights are gathered beside the next forward pass */
    /* Bytes of a parameter's states: 2 for the weight that is computed with, 4 more for a master
     * copy, two moments, the gradient, and what is there only while the optimizer runs. */
    bool states_master;
    int states_moments;       /* LhStateType, each of two */
    int states_gradient;      /* LhStateType, while gradients are kept */
    double states_step_bytes; /* of one parameter that the rank updates; more than 0:
                                 a copy made for the optimizer's step */
    int states_checkpoint;    /* LhCheckpoint: where a scenario says nothing */
    int states_shard;         /* LhShard: likewise */
    /* Bytes that small kernels read and write for each element of 16 bits, forward; backward twice
     * that. Loss and optimizer: both passes, all of the step. */
    double kernels_norm;        /* of the hidden state */
    double kernels_rotary;      /* of q and k */
    double kernels_glu;         /* of the inner width: act(gate) x up */
    double kernels_activation;  /* of the inner width, where the MLP is not gated */
    double kernels_residual;    /* of the hidden state: x + y */
    double kernels_unfused;     /* of the hidden state, once a layer: what kernels beside all these
                                   write for backward, and so hold till then (step/liveness.c) */
    double kernels_loss;        /* of a logit */
    double kernels_optimizer;   /* of a parameter that the rank updates */
    double kernels_merge_slice; /* of a block's output that is added to a part of a sum */
    bool kernels_fused_qkv;     /* q, k and v are one product */
    bool kernels_fused_gate;    /* gate and up are one product */
    /* What is done around every call of softmax attention's kernel, where the program has nothing
     * of it (sim/cost/call_cost.h). */
    bool call_gather;     /* what the kernel reads is gathered by index first */
    bool call_pad;        /* what it writes is scattered by index into zeros */
    double call_slowdown; /* a copy by index takes so many times as long as one in order; >= 1 */
    double call_host_s;   /* seconds of the host, beside that of a launch */
    /* Bytes that a logit takes while the loss is computed: the sum is what a rank holds of them. */
    double logits_activation_bytes; /* as the head writes them */
    double logits_fp32_bytes;       /* cast for the loss */
    double logits_softmax_bytes;    /* kept for backward */
    double logits_gradient_bytes;   /* beside the others, not in their place */
    /* Tensor parallelism with sequence parallelism, Megatron-LM's. */
    bool tp_overlap_gather;  /* backward's gather of x runs beside dgrad */
    bool tp_overlap_scatter; /* the scatter of dx runs beside wgrad */
    /* The host. */
    uint64_t memory_other_bytes; /* what the system holds beside tensors: buffers, workspaces */
    char *attention_kernel; /* the library whose attention kernels the system runs, on devices that
                               have it; NULL: the device's own */

    GArray *facts; /* of LhFrameworkFact: all values above, in order */
    char *sha256;
    int schema; /* version of longhaul.framework, from 0 */
} LhFramework;

/* Reads @name: a word (a file of frameworks/) or a path. Caller frees. */
LhFramework *lh_framework_load(const char *name, GError **error);
LhFramework *lh_framework_parse(const char *file, const char *text, gsize length, GError **error);
void lh_framework_free(LhFramework *framework);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhFramework, lh_framework_free)

/* The value of @key, "ddp.overlap", as people read it; NULL: there is no such value. Borrowed. */
const char *lh_framework_text(const LhFramework *framework, const char *key);

/* Makes the value of @key, which is a flag, a number or a choice, what @text says, on the authority
 * of @source; false if there is no such key or it has no such value. */
bool lh_framework_set(LhFramework *framework, const char *key, const char *text,
                      const char *source);

/* The values of a file that states none: ZeRO's paper for states, no overlap, fused kernels. Caller
 * frees. */
LhFramework *lh_framework_new(void);

/* Bytes of one parameter's master copy and moments, and of its gradient while that is kept; 16-bit
 * activations. */
double lh_framework_optimizer_bytes(const LhFramework *framework);
double lh_framework_gradient_bytes(const LhFramework *framework);

/* Bytes of a logit while the loss is computed: the four parts. */
double lh_framework_logit_bytes(const LhFramework *framework);

/* The field table of longhaul.framework/1, for its schema: of a struct that holds each value with
 * its origin and source, so LhFramework is not decoded by it. */
const LhField *lh_framework_fields(void);
