/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the step builder share; see step.h for who does what.
 */
#pragma once

#include "program/subprogram.h"
#include "step/layer_info.h"
#include "step/modules.h"
#include "step/pipeline.h"
#include "step/tensor_sizes.h"

#define LH_STEP_NONE UINT32_MAX

/* ---- policies ---- */

/* The roles that each policy keeps of a layer, as bits; of LH_CHECKPOINT_NONE all. Gradients may be
 * beyond the last bit: none of them is kept. */
#define LH_STEP_KEPT_BITS 64
extern const uint64_t lh_step_kept[LH_CHECKPOINTS];

/* ---- pipeline.c ---- */

/* What a stage sends or receives: the rows behind one of its chunks, or before it; or, backward,
 * their gradient. */
typedef struct {
    bool send, backward;
    uint16_t chunk, micro_batch;
} LhStepMessage;

#define LH_STEP_MESSAGES_MAX 4

/* What a stage does next: it exchanges messages, or works on a micro-batch with one of its chunks.
 */
typedef struct {
    uint8_t messages_count;                       /* 0: it works */
    LhStepMessage messages[LH_STEP_MESSAGES_MAX]; /* in the same order at both ends */
    bool backward;
    uint16_t chunk, micro_batch;
} LhStepTurn;

/* Layers of a chunk, with the embedding and the loss where these count. */
uint32_t lh_step_places_of_chunk(const LhStepParams *params);

/* Work that a stage does forward before it goes backward for the first time, one more apart. */
uint32_t lh_step_warmup(const LhStepParams *params, uint32_t stage);

/* The turns of every stage, as GArray * of LhStepTurn. Caller unrefs. */
GPtrArray *lh_step_turns(const LhStepParams *params);

/* ---- where things are ---- */

/* Where a rank stands. */
typedef struct {
    uint32_t tensor, context, stage;
    uint32_t data; /* context and data parallel together: which piece of weights is its own */
} LhStepPlace;

LhStepPlace lh_step_place_of(const LhStepPlan *plan, uint32_t rank);

/* ---- sizes ---- */

typedef struct {
    LhProgram *forward, *backward; /* of one layer; owned; NULL: the model has none of the kind */
    uint16_t *forward_slots, *backward_slots; /* LhSubprogram.slots; those of roles are filled in
                                                 when a layer is known */
    uint8_t *forward_roles, *backward_roles;  /* [slots] LhStepRole, LH_STEP_ROLES: its own */
    uint8_t forward_streams[LH_STREAMS_MAX], backward_streams[LH_STREAMS_MAX]; /* those around it */
    uint32_t *forward_steps, *backward_steps; /* [context-parallel ranks] */
} LhStepModule;

/* A tensor's shape on a rank. */
typedef struct {
    LhTensorKind kind;
    LhDtype dtype;
    LhCategory category; /* where it is not kept for the backward pass */
    uint32_t head_dim;
    uint32_t parts;
    uint64_t part_bytes;
    uint64_t rows, width; /* of roles outside attention */
} LhStepShape;

LhStepShape lh_step_role_shape(const LhStepPlan *plan, LhStepRole role, uint32_t layer);

/* The role that stands for @role: without tensor parallelism, sums and gathered rows are the rank's
 * own rows. */
LhStepRole lh_step_role(const LhStepPlan *plan, LhStepRole role);

/* ---- a micro-batch, written down ---- */

typedef struct {
    uint8_t family; /* LhStepFamily */
    uint8_t what;   /* LhStepRole or LhStepWeight */
    bool stays;     /* there for the whole step; at its own place */
    bool placed;    /* its instance is its layer's place, not any that is free */
    bool kept;      /* made in the forward pass, used in the backward pass */
    uint16_t layer, stage;
    uint32_t first, last; /* calls that touch it */
    uint32_t class_index; /* of LhStepClass */
    uint32_t instance;
} LhStepTensor;

/* A slot: tensors of one shape. */
typedef struct {
    uint8_t family, what;
    uint8_t variant; /* LhStepVariant */
    const char *name;
    bool kept, stays;
    uint32_t stage; /* of a pipeline, whose alone they are; LH_STEP_NONE: all stages' */
    LhStepShape shape;
    uint32_t instances;
    uint16_t slot;
} LhStepClass;

typedef enum {
    LH_STEP_CALL_COMPUTE,
    LH_STEP_CALL_COLLECTIVE,
    LH_STEP_CALL_EXCHANGE, /* with other stages */
    LH_STEP_CALL_MODULE,
    LH_STEP_CALL_SYNC,
    LH_STEP_CALL_ALLOC,
    LH_STEP_CALL_FREE,
} LhStepCallKind;

typedef enum {
    LH_STEP_GROUP_TENSOR,   /* tensor parallel */
    LH_STEP_GROUP_DATA,     /* data and context parallel */
    LH_STEP_GROUP_REPLICAS, /* tensor-parallel ranks that have the same key-value heads */
    LH_STEP_GROUP_MODEL,    /* tensor-parallel ranks of all stages: they have one of everything */
    LH_STEP_GROUP_ENDS,     /* the first and the last stage */
    LH_STEP_GROUP_ALL,
    LH_STEP_GROUPS
} LhStepGroup;

/* Parts [part, part + count) of a tensor. */
typedef struct {
    uint32_t tensor;
    uint32_t part, count;
    bool reads, writes;
    bool own_piece;      /* of all ranks' pieces, the rank's: `part` is moved by its place */
    bool of_micro_batch; /* `part` is moved by count x the micro-batch's number */
    bool gradient;       /* of exchanges: it is one, and goes to the stage before */
} LhStepUse;

#define LH_STEP_USES_MAX (2 * LH_COLLECTIVE_TENSORS_MAX)
#define LH_STEP_HISTORY 4 /* ops of a stream that a cursor remembers */

/* A stream's op before the present one: the `back`-th, from 1; 0: none. */
typedef struct {
    uint8_t back[LH_STEP_STREAMS];
} LhStepWaits;

typedef struct {
    uint8_t does;      /* LhStepCallKind */
    uint8_t stream;    /* LhStepStream */
    uint8_t phase;     /* LhPhase */
    uint8_t kind;      /* LhStepKind: of a module */
    bool backward;     /* of a module */
    bool starts;       /* args.first in the first micro-batch ... */
    bool fresh;        /* ... or in all */
    uint8_t segment;   /* of a call between rows and heads */
    uint32_t replicas; /* only the first of so many tensor-parallel ranks in a row has the call */
    bool open;         /* of collectives: more tensors may join */
    uint32_t gather; /* of gathered weights: calls of one number belong together, from 1; 0: none */
    uint8_t group;   /* LhStepGroup */
    uint8_t collective; /* LhCollectiveKind */
    uint8_t communicator;
    uint8_t uses_count; /* operands; send and receive, by turns */
    uint32_t uses;      /* the first of them, in the list's */
    uint16_t layer;
    uint16_t micro_batch; /* counted from that of the list */
    uint32_t args;        /* in LhStepPlan.args */
    LhKernelId kernel;
    LhStepWaits waits;
    bool after_module; /* comes after all that the last module does to inputs and outputs ... */
    bool after_all;    /* ... or to anything */
} LhStepCall;

/* Calls without a module between them, or one module. */
typedef struct {
    uint32_t first, count;
} LhStepChunk;

typedef struct {
    GArray *calls;   /* of LhStepCall */
    GArray *uses;    /* of LhStepUse, of all calls */
    GArray *tensors; /* of LhStepTensor; each list has its own, but those that stay are first */
    GArray *chunks;  /* of LhStepChunk */
    uint32_t plain_chunks;
    uint32_t modules[LH_STEP_KINDS][2]; /* how many, forward and backward */
} LhStepList;

/* The uses of a call of @list; valid until others are added. */
static inline LhStepUse *
lh_step_uses(const LhStepList *list, const LhStepCall *call)
{
    return &g_array_index(list->uses, LhStepUse, call->uses);
}

/* What a stage does: without a pipeline, `inner` for each micro-batch but the last one, and `last`
 * with the optimizer; in a pipeline `last` is all of it. */
typedef struct {
    LhStepList inner, last;
} LhStepStage;

struct _LhStepPlan {
    LhStepParams params; /* model points to the copy below */
    LhModel model;
    uint32_t layers;
    uint8_t *kinds; /* [layers] LhStepKind */
    bool *dense;    /* of each layer: it has one MLP and no experts; owned */
    uint32_t kind_layers[LH_STEP_KINDS];
    bool gated[LH_STEP_KINDS]; /* their attention has an output gate */
    LhStepModule modules[LH_STEP_KINDS];
    const LhProgram *programs[2 * LH_STEP_KINDS]; /* theirs, by LhOp.module - 1 */
    uint32_t segments;                            /* of a context-parallel rank */
    uint64_t rows;                                /* tokens of a micro-batch on it, all sequences */
    uint32_t data_ranks;                          /* D: context x data parallel */
    GArray *args;                                 /* of LhKernelArgs */
    GArray *classes;                              /* of LhStepClass */
    LhStepStage *stages;                          /* [lh_step_stages()] */
};

/* modules.c */
bool lh_step_make_modules(LhStepPlan *plan, GError **error);
void lh_step_clear_modules(LhStepPlan *plan);
/* Moves the programs of the modules to @attention. */
void lh_step_take_attention(LhStepPlan *plan, LhStepAttention *attention);
/* Declares the module's own slots and streams in @program. */
void lh_step_declare_modules(LhStepPlan *plan, LhProgram *program);

/* stage_calls.c: a micro-batch, @last with the optimizer; or all that a stage does in its turns. */
void lh_step_record(LhStepPlan *plan, LhStepList *list, bool last);
void lh_step_record_turns(LhStepPlan *plan, uint32_t stage, const GArray *turns);

/* tensor_sizes.c: of a tensor of any family */
LhStepShape lh_step_tensor_shape(const LhStepPlan *plan, const LhStepTensor *tensor);
uint64_t lh_step_piece_elements(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/* liveness.c: layers may have a tensor in different shapes, or not all have it. */
typedef struct {
    uint8_t number;   /* equal of layers that have it in the same shape */
    const char *name; /* "_lin"; "" of the usual one */
} LhStepVariant;
LhStepVariant lh_step_variant(const LhStepPlan *plan, LhStepFamily family, uint8_t what,
                              uint32_t layer);

/* liveness.c: adds allocs and frees to all lists, and gives every tensor its place. */
void lh_step_place(LhStepPlan *plan);

/* sync_edges.c: needs placed lists. */
void lh_step_order(LhStepPlan *plan);

/* call_ops.c */
extern const LhGenerator lh_step_generator;
