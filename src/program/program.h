/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of schedules: per-rank programs of ops over declared slots. A program is declarations
 * and a generator, which cursors (cursor.h) call for the ops of one step at a time; verifier,
 * simulator and runtime read programs through cursors and nothing else.
 */
#pragma once

#include "kernels/tensor.h"
#include "model/attention.h"
#include "program/op.h"
#include "program/option.h"
#include "program/placement.h"

#include <glib.h>

#define LH_RANKS_MAX (UINT32_C(1) << 20) /* of all groups */
#define LH_STREAMS_MAX 16
#define LH_PROGRAM_OPTIONS_MAX 16
#define LH_SLOT_NAME_BYTES 32 /* of a slot's name, with its end */

typedef enum {
    LH_SLOT_TEMP,   /* its parts exist from an alloc op to a free op */
    LH_SLOT_INPUT,  /* there before the program, holding the rank's own segments; stays */
    LH_SLOT_OUTPUT, /* there before the program, empty; must hold the rank's complete result at its
                       end */
    LH_SLOT_STATE,  /* there before the program and behind it, and changed by it: weights, states of
                       the optimizer. Of a training step only */
} LhSlotRole;

/* What the memory of a slot is for, in reports. */
typedef enum {
    LH_CATEGORY_ATTENTION, /* buffers of an attention module; all of one alone */
    LH_CATEGORY_WEIGHTS,
    LH_CATEGORY_GRADIENTS, /* of weights */
    LH_CATEGORY_OPTIMIZER,
    LH_CATEGORY_SAVED,         /* activations that the backward pass needs */
    LH_CATEGORY_WORKING,       /* other activations, and their gradients */
    LH_CATEGORY_COMMUNICATION, /* gathered weights, gradients on their way */
    LH_CATEGORY_LOGITS,
    LH_CATEGORY_OTHER, /* what the framework and libraries hold for themselves */
    LH_CATEGORIES
} LhCategory;

/*
 * A buffer of every rank. A slot has one or more parts of equal size; ops name ranges of parts. A
 * part holds the rows of one segment for one slice of the heads; what it is in input and output
 * slots says lh_program_holding().
 */
typedef struct {
    char name[LH_SLOT_NAME_BYTES];
    LhTensorKind kind;
    LhSlotRole role;
    LhDtype dtype;     /* of its principal tensor (acc: of o); statistics are always fp32 */
    uint32_t head_dim; /* of tensors by heads; the program's, of inputs and outputs */
    bool by_heads; /* an input or output that is saved between the passes by heads: saved_group */
    LhCategory category;
    uint32_t parts;
    uint32_t first_cell; /* the rank's parts, of all slots, are numbered through: its first one */
    uint64_t part_bytes; /* in device memory */
    /* Of the ranks from this one on, so many have it: of pipeline stages each its own weights; 0:
     * all ranks. */
    uint32_t first_rank, ranks_count;
} LhSlot;

typedef enum {
    LH_STREAM_COMPUTE,
    LH_STREAM_COMM,
} LhStreamKind;

typedef struct {
    char name[12];
    LhStreamKind kind;
} LhStream;

/* Indexed by their enums, NULL-terminated. */
extern const char *const lh_role_names[];
extern const char *const lh_category_names[];
extern const char *const lh_stream_kind_names[];

typedef enum {
    LH_PASS_FWD = 1,
    LH_PASS_BWD = 2,
    LH_PASS_BOTH = 3,
} LhPass;

/* Indexed by LhPass - 1, NULL-terminated: "fwd", "bwd", "both". */
extern const char *const lh_pass_names[];

typedef struct {
    const LhOption *option;
    LhOptionValue value;
} LhOptionSetting;

/* Everything that decides a program, and hence what crosses which link. */
struct _LhProgramParams {
    LhAttention attention;
    uint32_t ranks;
    LhMaskRule mask; /* its documents are borrowed; a program has a copy of its own */
    LhPass pass;
    uint32_t gpus_per_node; /* of the cluster, for defaults that depend on it; 0: unknown */
    /* A forward pass alone leaves, as outputs, all that a backward pass alone is given. */
    bool keep_saved;
    /*
     * Groups of `ranks` consecutive ranks, each of which runs the schedule on a batch of its own
     * and exchanges nothing with the others; 0 and 1: one. Schedules and closed forms see one
     * group.
     */
    uint32_t data_parallel_size;
    /* The schedule's options (option.h); those that are not among them have their default. */
    LhOptionSetting options[LH_PROGRAM_OPTIONS_MAX];
    uint32_t options_count;
};

/* The ranks of all groups. */
static inline uint32_t
lh_params_ranks(const LhProgramParams *params)
{
    return (uint32_t)MIN((uint64_t)params->ranks * MAX(params->data_parallel_size, 1), UINT32_MAX);
}

static inline bool
lh_pass_has(const LhProgramParams *p, LhPass pass)
{
    return (p->pass & pass) != 0;
}

typedef struct _LhProgram LhProgram;
typedef struct _LhEmitter LhEmitter;
struct _LhStepPlan;

/* Where ops come from. */
typedef struct {
    /* How many steps the program of one rank has. */
    uint32_t (*steps)(const LhProgram *program, uint32_t rank);
    /* Emits the ops of @step (emit.h). */
    void (*emit)(LhEmitter *e, uint32_t step);
    /* Its ranks are those of all groups; else it knows one group's, from 0, and stands for all. */
    bool of_all_groups;
} LhGenerator;

/*
 * Closed forms, per rank of one group, in the notation of docs/reference/schedules.md. NULL where
 * there is none. They are what the verifier holds the program against, so they must not be computed
 * from the program.
 */
typedef struct {
    uint64_t (*bytes_sent)(const LhProgramParams *p, uint32_t rank);
    uint64_t (*flops)(const LhProgramParams *p, uint32_t rank); /* attention kernels only */
    uint64_t (*peak_bytes)(const LhProgramParams *p, uint32_t rank);
    /* Idle fraction with free communication: every block costs 1; or exact causal flops. Forward
     * pass. */
    double (*idle_unit)(const LhProgramParams *p);
    double (*idle_flops)(const LhProgramParams *p);
} LhClosedForms;

/* What a program says of itself, one number per rank. */
typedef enum {
    LH_CLAIM_BYTES_SENT,
    LH_CLAIM_FLOPS,
    LH_CLAIM_PEAK_BYTES,
    LH_CLAIMS,
} LhClaim;

/*
 * Ranks that do the same: their programs have the same ops in the same order, which name the same
 * things of their like. Every `row` ranks in a row all but the first, which may do more before a
 * collective that all of them take part in; and ranks that are `shift` apart, of which there are
 * `shifts` in turn. 1, or 0: there are none.
 */
typedef struct {
    uint32_t row, shift, shifts;
} LhSymmetry;

/* A program for all ranks. Immutable once made. */
struct _LhProgram {
    char *name; /* owned: the schedule's, or that of the file that it stands in */
    const LhGenerator *generator;
    const LhClosedForms *closed;  /* NULL: an explicit program has none ... */
    uint64_t *claimed[LH_CLAIMS]; /* ... but may state numbers, per rank; owned; NULL: not stated */
    LhProgramParams params;
    LhPlacement placement;
    /* Slices of equal size that all tensors are cut into by heads; 0 and 1: none. Each of the
     * kv_slices belongs to head_slices / kv_slices consecutive slices of query heads. */
    uint32_t head_slices, kv_slices;
    LhSlot *slots; /* owned */
    uint32_t slots_count;
    LhStream streams[LH_STREAMS_MAX];
    uint32_t streams_count;
    uint64_t *document_ends; /* owned; params.mask names them */
    /*
     * Where ranks exchange heads for tokens, the forward pass saves tensors by heads: of all
     * segments of a group of saved_group ranks in a row, the slices that the rank works on. A
     * backward pass alone is given them in that form, and a forward pass with keep_saved leaves
     * them so, in slots that say so. 0: none.
     */
    uint32_t saved_group;
    /*
     * Programs that are embedded in it, by the number that their ops have as `module`, from 1 on;
     * entries may be NULL. What their ops mean is said by them: sizes and slices are those of the
     * embedded program, not this one's. Borrowed from the plan.
     */
    const LhProgram *const *modules;
    uint32_t modules_count;
    LhSymmetry symmetry;
    /* What a training step is (step/graph.h); NULL: it is none. Borrowed from the plan. */
    const struct _LhStepPlan *step;
    /* As texts of options, for the record: what it was made with. Owned; NULL: nothing to say. */
    char **record;
    void *plan; /* the generator's own, worked out once */
    GDestroyNotify plan_free;
};

/* Whether an op belongs to an embedded program. */
static inline bool
lh_program_embeds(const LhProgram *program, const LhOp *op)
{
    return op->module > 0 && op->module <= program->modules_count;
}

/* The program that says what an op means: sizes, slices, placement. Slots are @program's. */
static inline const LhProgram *
lh_program_of_op(const LhProgram *program, const LhOp *op)
{
    return lh_program_embeds(program, op) ? program->modules[op->module - 1] : program;
}

/* An empty program for @params, whose documents it copies. The caller declares the rest and frees.
 */
LhProgram *lh_program_create(const char *name, const LhGenerator *generator,
                             const LhProgramParams *params, LhPlacementKind placement);
void lh_program_free(LhProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhProgram, lh_program_free)

/* Returns the slot's index. */
typedef struct {
    const char *name; /* shorter than LH_SLOT_NAME_BYTES */
    LhTensorKind kind;
    LhSlotRole role;
    LhDtype dtype;
    uint32_t head_dim; /* 0: the program's */
    bool by_heads;
    LhCategory category;
    uint32_t parts;
    uint64_t part_bytes;
    uint32_t first_rank, ranks_count; /* as LhSlot has them */
} LhSlotParams;
uint16_t lh_program_add_slot(LhProgram *program, LhSlotParams slot);

/* Returns the stream's index. */
uint8_t lh_program_add_stream(LhProgram *program, const char *name, LhStreamKind kind);

/* The rules that all programs keep; what fails is LH_ERROR_NO, without a name in front. */
bool lh_program_check(LhPlacementKind placement, const LhProgramParams *params, GError **error);

/* Sets LH_ERROR_NO with a message; returns false. */
bool lh_program_refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* What the program says of itself on @rank, of all; false if it says nothing. */
bool lh_program_claim(const LhProgram *program, LhClaim claim, uint32_t rank, uint64_t *value);

/* The ranks of all groups; the place of @rank in its own. */
uint32_t lh_program_ranks(const LhProgram *program);
uint32_t lh_program_group_rank(const LhProgram *program, uint32_t rank);

/* The ranks of the group that @rank belongs to. */
LhGroup lh_program_group(const LhProgram *program, uint32_t rank);

/* Parts of all slots of a rank. */
uint32_t lh_program_cells(const LhProgram *program);

/* Whether a rank has the slot. */
static inline bool
lh_slot_is_on(const LhSlot *slot, uint32_t rank)
{
    return slot->ranks_count == 0 ||
           (rank >= slot->first_rank && rank - slot->first_rank < slot->ranks_count);
}

/* Whether who runs a program fills the slot before it; and looks at it when it has ended. */
static inline bool
lh_slot_is_given(const LhSlot *slot)
{
    return slot->role == LH_SLOT_INPUT || slot->role == LH_SLOT_STATE;
}

static inline bool
lh_slot_is_result(const LhSlot *slot)
{
    return slot->role == LH_SLOT_OUTPUT || slot->role == LH_SLOT_STATE;
}

static inline uint32_t
lh_slot_element_bytes(const LhSlot *slot)
{
    return lh_dtype_bytes(slot->dtype);
}

/* Whether the parts of a slot have halves that a region may name alone. */
static inline bool
lh_slot_has_halves(const LhSlot *slot)
{
    return slot->kind == LH_TENSOR_KV || slot->kind == LH_TENSOR_DKV;
}

/* Device bytes of what a region names in each of its parts, and in all of them. */
static inline uint64_t
lh_region_part_bytes(const LhProgram *program, LhRegion region)
{
    return program->slots[region.slot].part_bytes / (region.half == LH_HALF_BOTH ? 1 : 2);
}

static inline uint64_t
lh_region_bytes(const LhProgram *program, LhRegion region)
{
    return region.count * lh_region_part_bytes(program, region);
}

/* All parts of a slot. */
static inline LhRegion
lh_region_whole(const LhProgram *program, uint16_t slot)
{
    return (LhRegion){ .slot = slot, .count = program->slots[slot].parts };
}
