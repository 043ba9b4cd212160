/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types shared by the files of the step builder; step.h lists the files.
 */
#pragma once

#include "program/subprogram.h"
#include "step/layer_info.h"
#include "step/modules.h"
#include "step/pipeline/pipeline.h"
#include "step/tensor_sizes.h"

#define LH_STEP_NONE UINT32_MAX

/* ---- ranks ---- */

/* Coordinates of a rank. */
typedef struct {
    uint32_t tensor, context, stage;
    /* Context and data parallel combined: index of the rank's piece of the weights. */
    uint32_t data;
} LhStepPlace;

LhStepPlace lh_step_place_of(const LhStepPlan *plan, uint32_t rank);

/* ---- sizes ---- */

/* Modules of packs other than the first have programs and steps alone: the rest is the same. */
typedef struct {
    LhProgram *forward, *backward; /* of one layer; owned; NULL: the model has no such layer */
    /* LhSubprogram.slots; those of roles are filled in when the layer is known. */
    uint16_t *forward_slots, *backward_slots;
    /* [slots] LhStepRole; LH_STEP_ROLES: a slot of its own. */
    uint8_t *forward_roles, *backward_roles;
    /* The step's streams. */
    uint8_t forward_streams[LH_STREAMS_MAX], backward_streams[LH_STREAMS_MAX];
    uint32_t *forward_steps, *backward_steps; /* [context-parallel ranks] */
} LhStepModule;

/* Shape of a tensor on a rank. */
typedef struct {
    LhTensorKind kind;
    LhDtype dtype;
    LhCategory category; /* if it is not kept for the backward pass */
    uint32_t head_dim;
    uint32_t parts;
    uint64_t part_bytes;
    uint64_t rows, width; /* for roles outside attention */
} LhStepShape;

LhStepShape lh_step_role_shape(const LhStepPlan *plan, LhStepRole role, uint32_t layer);

/* The role that @role is stored as. Without tensor parallelism, sums and gathered rows are the
 * rank's own rows. */
LhStepRole lh_step_role(const LhStepPlan *plan, LhStepRole role);

/* ---- a recorded micro-batch ---- */

typedef struct {
    uint8_t family; /* LhStepFamily */
    uint8_t what;   /* LhStepRole or LhStepWeight */
    bool stays;     /* live for the whole step, in a place of its own */
    bool placed;    /* its instance is fixed by its layer, not any free one */
    bool kept;      /* made in the forward pass, used in the backward pass */
    uint16_t layer, stage;
    uint32_t first, last; /* calls of its live range */
    uint32_t class_index; /* of LhStepClass */
    uint32_t instance;
} LhStepTensor;

/* A slot, with all tensors of one shape. */
typedef struct {
    uint8_t family, what;
    uint8_t variant; /* LhStepVariant */
    const char *name;
    bool kept, stays;
    bool on_host;
    uint32_t stage; /* pipeline stage that alone has it; LH_STEP_NONE: all stages */
    LhStepShape shape;
    uint32_t instances;
    uint16_t slot;
} LhStepClass;

typedef enum {
    LH_STEP_CALL_COMPUTE,
    LH_STEP_CALL_COLLECTIVE,
    LH_STEP_CALL_EXCHANGE, /* between stages */
    LH_STEP_CALL_MODULE,
    LH_STEP_CALL_COPY,    /* between device and host: an op for each tensor; uses alternate */
    LH_STEP_CALL_RELEASE, /* no op: its tensors, being copied to the host, stay until here */
    LH_STEP_CALL_SYNC,
    LH_STEP_CALL_ALLOC,
    LH_STEP_CALL_FREE,
} LhStepCallKind;

typedef enum {
    LH_STEP_GROUP_TENSOR,   /* tensor parallel */
    LH_STEP_GROUP_DATA,     /* data and context parallel */
    LH_STEP_GROUP_REPLICAS, /* tensor-parallel ranks with the same key-value heads */
    /* Tensor-parallel ranks of all stages: together they hold the model once. */
    LH_STEP_GROUP_MODEL,
    LH_STEP_GROUP_ENDS, /* first and last stage */
    LH_STEP_GROUP_ALL,
    LH_STEP_GROUPS
} LhStepGroup;

/* Parts [part, part + count) of a tensor. */
typedef struct {
    uint32_t tensor;
    uint32_t part, count;
    bool reads, writes;
    bool own_piece;      /* the rank's own piece: `part` is offset by the rank's position */
    bool of_micro_batch; /* `part` is offset by count x micro-batch */
    bool gradient;       /* exchanges: a gradient, which goes to the previous stage */
} LhStepUse;

#define LH_STEP_USES_MAX (2 * LH_COLLECTIVE_TENSORS_MAX)
#define LH_STEP_HISTORY 4 /* ops of each stream that a cursor remembers */

/* For each stream: the op to wait for, counted backwards from the latest, from 1; 0: none. */
typedef struct {
    uint8_t back[LH_STEP_STREAMS];
} LhStepWaits;

#define LH_STEP_BEHIND(stream) ((uint8_t)(1u << (stream)))

typedef struct {
    uint8_t does;    /* LhStepCallKind */
    uint8_t stream;  /* LhStepStream */
    uint8_t phase;   /* LhPhase */
    uint8_t kind;    /* LhStepKind: of a module */
    bool backward;   /* of a module */
    bool starts;     /* args.first in the first micro-batch ... */
    bool fresh;      /* ... or in all */
    uint8_t segment; /* of a kernel that converts between rows and heads */
    /* Only the first of this many consecutive tensor-parallel ranks makes the call. */
    uint32_t replicas;
    /* Only this many data- and context-parallel ranks make the call, from `owners_first` on, modulo
     * their number; 0: all. */
    uint32_t owners_first, owners;
    /* LhStepWeight that Muon orthogonalises, on each rank that of another layer, the first one's on
     * rank `owners_first`; 0: none. */
    uint8_t matrix;
    bool open;      /* collectives: more tensors may be added */
    bool of_shard;  /* a copy of the rank's piece of a weight; none if that is empty */
    uint8_t behind; /* bits of streams whose earlier calls end before it begins */
    /* Gathers of weights: calls with the same number belong together, from 1; 0: none. */
    uint32_t gather;
    uint8_t group;      /* LhStepGroup */
    uint8_t collective; /* LhCollectiveKind */
    uint8_t communicator;
    uint8_t uses_count; /* operands; for collectives send and receive alternate */
    uint32_t uses;      /* index of the first one in the list's uses */
    uint16_t layer;
    uint16_t micro_batch; /* relative to the first micro-batch of the list */
    uint32_t args;        /* index in LhStepPlan.args */
    LhKernelId kernel;
    LhStepWaits waits;
    bool after_module; /* waits for what the last module does to its inputs and outputs ... */
    bool after_all;    /* ... or for all its ops */
} LhStepCall;

/* A run of calls without a module, or one module. */
typedef struct {
    uint32_t first, count;
} LhStepChunk;

/* Chunks [first, first + count) are done `times` more times, each `micro_batches` micro-batches
 * later; what is behind them is as much later. */
typedef struct {
    uint32_t first, count;
    uint32_t times; /* 0: none */
    uint32_t micro_batches;
} LhStepRepeat;

typedef struct {
    GArray *calls;   /* of LhStepCall */
    GArray *uses;    /* of LhStepUse, of all calls */
    GArray *tensors; /* of LhStepTensor; tensors that stay come first */
    GArray *chunks;  /* of LhStepChunk */
    LhStepRepeat repeat;
    /* Including those repeated, like `modules`. */
    uint32_t plain_chunks;
    uint32_t modules[LH_STEP_KINDS][2]; /* number of modules, forward and backward */
} LhStepList;

/* Uses of a call of @list; valid until more are added. */
static inline LhStepUse *
lh_step_uses(const LhStepList *list, const LhStepCall *call)
{
    return &g_array_index(list->uses, LhStepUse, call->uses);
}

/* Calls of a stage. Without a pipeline, `inner` is repeated for all micro-batches but the last;
 * `last` is the last one with the optimizer. In a pipeline `last` has everything. */
typedef struct {
    LhStepList inner, last;
} LhStepStage;

struct _LhStepPlan {
    LhStepParams params; /* model points to the member below */
    LhModel model;
    uint32_t layers;
    uint8_t *kinds; /* [layers] LhStepKind */
    bool *dense;    /* [layers], owned: the layer has one MLP and no experts */
    uint32_t kind_layers[LH_STEP_KINDS];
    bool gated[LH_STEP_KINDS]; /* attention of this kind has an output gate */
    /* packs.c: those that differ, owned; the number of each micro-batch's pack, or one for all; and
     * the pack itself. */
    LhDocumentPack *packs;
    uint32_t packs_count;
    uint32_t *pack_numbers;
    LhDocumentPack *packs_of_all;
    LhStepModule *modules;      /* [packs_count][LH_STEP_KINDS] */
    const LhProgram **programs; /* of the modules, by LhOp.module - 1 */
    uint32_t segments;          /* per context-parallel rank */
    /* Tokens of a micro-batch on such a rank, over all sequences. */
    uint64_t rows;
    uint32_t tiles[LH_STEP_TILINGS]; /* of each loop; 0: its rows are not tiled */
    /* Parts of the rows of a segment and tensor-parallel rank, for the tiles. Rows are
     * [segments][tensor-parallel ranks][cuts][batch][tokens]. */
    uint32_t cuts;
    uint32_t data_ranks; /* D: context x data parallel */
    bool *host_states;   /* [stages][weights], owned: host_states.c; NULL: none is on the host */
    GArray *args;        /* of LhKernelArgs, each once */
    GHashTable *args_at; /* index of the first ones with a hash */
    GArray *classes;     /* of LhStepClass */
    LhStepStage *stages; /* [lh_step_stages()] */
};

/* modules.c */
bool lh_step_make_modules(LhStepPlan *plan, GError **error);
void lh_step_clear_modules(LhStepPlan *plan);
/* Moves the modules' programs to @attention. */
void lh_step_take_attention(LhStepPlan *plan, LhStepAttention *attention);
/* The shape of a role in the layout of attention. */
LhStepShape lh_step_attention_shape(const LhStepPlan *plan, LhStepRole role, LhStepKind kind);
/* Declares the modules' own slots and streams in @program. */
void lh_step_declare_modules(LhStepPlan *plan, LhProgram *program);

/* stage_calls.c: records a micro-batch, with the optimizer if @last; or the turns of a stage, of
 * @micro_batches micro-batches. */
void lh_step_record(LhStepPlan *plan, LhStepList *list, bool last);
void lh_step_record_turns(LhStepPlan *plan, uint32_t stage, const GArray *turns,
                          uint32_t micro_batches);

/* layer_info.c: the ranks of a group that @rank belongs to. */
LhGroup lh_step_group(const LhStepPlan *plan, LhStepGroup group, uint32_t rank);
/* layer_info.c: whether @rank, of its stage, makes a call. */
bool lh_step_makes(const LhStepPlan *plan, const LhStepCall *call, uint32_t rank);

/* tensor_sizes.c: for a tensor of any family. */
LhStepShape lh_step_tensor_shape(const LhStepPlan *plan, const LhStepTensor *tensor);
uint64_t lh_step_piece_elements(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/* The index of a stream in the program. */
static inline uint8_t
lh_step_stream_index(const LhStepPlan *plan, uint8_t stream)
{
    const bool pipe = lh_step_stages(&plan->params) > 1;

    return (uint8_t)(stream > LH_STEP_STREAM_PIPELINE && !pipe ? stream - 1 : stream);
}

/* Whether a stream copies between device and host: attention may have to wait for it. */
static inline bool
lh_step_is_of_host(uint32_t stream)
{
    return stream == LH_STEP_STREAM_TO_HOST || stream == LH_STEP_STREAM_FROM_HOST;
}

/* Whether the family of a tensor is in host memory, whatever the weight. */
static inline bool
lh_step_is_on_host(uint8_t family)
{
    return family == LH_STEP_OF_HOST || family == LH_STEP_OF_HOST_UNFUSED ||
           family == LH_STEP_OF_HOST_NORM ||
           (family >= LH_STEP_OF_HOST_WEIGHT && family <= LH_STEP_OF_HOST_GRADIENT_SUM);
}

/* sync_edges.c: sets the waits of all calls; needs placed lists. */
void lh_step_order(LhStepPlan *plan);

/* call_ops.c */
extern const LhGenerator lh_step_generator;

/* Hash of a call's form. Calls of one form differ only in which of a slot's equal tensors they
 * touch, and in their waits. @first is the first micro-batch of the list. */
uint64_t lh_step_call_form(const LhStepPlan *plan, const LhStepList *list, const LhStepCall *call,
                           uint32_t first);
