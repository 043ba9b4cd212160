/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs: the form of schedules, as per-rank sequences of ops over declared slots. A program
 * consists of declarations and a generator, which cursors (cursor.h) call for the ops of one step
 * at a time. Verifier, simulator and runtime read programs through cursors only.
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
#define LH_SLOT_NAME_BYTES 32 /* including the terminating NUL */

typedef enum {
    LH_SLOT_TEMP,   /* its parts exist from an alloc op to a free op */
    LH_SLOT_INPUT,  /* exists before the program with the rank's own segments, and stays */
    LH_SLOT_OUTPUT, /* exists before the program, empty; at its end it must hold the rank's complete
                       result */
    LH_SLOT_STATE,  /* exists before and after the program, which changes it: weights, optimizer
                       states. Only in steps */
} LhSlotRole;

/* What the memory of a slot is used for, in reports. */
typedef enum {
    LH_CATEGORY_ATTENTION, /* buffers of an attention module; all slots of attention alone */
    LH_CATEGORY_WEIGHTS,
    LH_CATEGORY_GRADIENTS, /* weight gradients */
    LH_CATEGORY_OPTIMIZER,
    LH_CATEGORY_SAVED,         /* activations that the backward pass needs */
    LH_CATEGORY_WORKING,       /* other activations and their gradients */
    LH_CATEGORY_COMMUNICATION, /* gathered weights, gradients in flight */
    LH_CATEGORY_LOGITS,
    LH_CATEGORY_OTHER, /* memory of the framework and libraries */
    LH_CATEGORY_CACHE, /* keys and values that a forward pass alone leaves */
    LH_CATEGORIES
} LhCategory;

/*
 * A buffer of every rank. A slot has one or more parts of equal size; ops name ranges of parts. A
 * part holds the rows of one segment for one slice of the heads; lh_slot_holding() gives the
 * contents of input and output slots.
 */
typedef struct {
    char name[LH_SLOT_NAME_BYTES];
    LhTensorKind kind;
    LhSlotRole role;
    LhDtype dtype;     /* of the main tensor (acc: of o); statistics are always fp32 */
    uint32_t head_dim; /* for tensors by heads; inputs and outputs have the program's */
    bool by_heads;     /* an input or output saved between the passes by heads: see saved_group */
    bool on_host;      /* in host memory: a temporary slot or a state */
    LhCategory category;
    uint32_t parts;
    uint32_t first_cell; /* index of its first part among all parts of a rank */
    uint64_t part_bytes; /* device memory, or host memory */
    /* The ranks that have the slot: ranks_count ranks from first_rank on, for example the
     * weights of a pipeline stage. 0: all ranks. */
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

/* Everything that determines a program, and hence its traffic on every link. */
struct _LhProgramParams {
    LhAttention attention;
    uint32_t ranks;
    LhMaskRule mask; /* documents are borrowed; a program copies them */
    LhPass pass;
    uint32_t gpus_per_node; /* of the cluster, for defaults that depend on it; 0: unknown */
    /* A forward pass alone leaves, as outputs, all tensors that a backward pass alone takes as
     * inputs. */
    bool keep_saved;
    /*
     * Data-parallel groups of `ranks` consecutive ranks. Each runs the schedule on its own batch,
     * without communication between groups; 0 and 1: one group. Schedules and closed forms see one
     * group.
     */
    uint32_t data_parallel_size;
    /* The schedule's options (option.h); all others have their default. */
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

/* Source of the ops of a program. */
typedef struct {
    /* The number of steps in the program of one rank. */
    uint32_t (*steps)(const LhProgram *program, uint32_t rank);
    /* Emits the ops of @step (emit.h). */
    void (*emit)(LhEmitter *e, uint32_t step);
    /* Whether it generates all groups' ranks; otherwise only those of one group, numbered from
     * 0, for all groups alike. */
    bool of_all_groups;
    bool embeds; /* emits other programs as parts of this one: lh_subprogram_begin() */
} LhGenerator;

/*
 * Closed forms, per rank of one group, in the notation of docs/reference/schedules.md; NULL if
 * there is none. The verifier checks programs against them, so they must not be computed from the
 * program.
 */
typedef struct {
    uint64_t (*bytes_sent)(const LhProgramParams *p, uint32_t rank);
    uint64_t (*flops)(const LhProgramParams *p, uint32_t rank); /* attention kernels only */
    uint64_t (*peak_bytes)(const LhProgramParams *p, uint32_t rank);
    /* Idle fraction of the forward pass with free communication: with unit cost per block, or
     * with exact causal flops. */
    double (*idle_unit)(const LhProgramParams *p);
    double (*idle_flops)(const LhProgramParams *p);
} LhClosedForms;

/* Totals that a program claims, one number per rank. */
typedef enum {
    LH_CLAIM_BYTES_SENT,
    LH_CLAIM_FLOPS,
    LH_CLAIM_PEAK_BYTES,
    LH_CLAIMS,
} LhClaim;

/*
 * Symmetries between ranks. Equivalent ranks have the same ops in the same order, with
 * corresponding operands and peers. Within each run of `row` ranks all but the first are
 * equivalent; the first may do more before a collective of the whole run. Ranks r, r + shift, ...
 * (`shifts` of them) are equivalent. 1 or 0: no symmetry.
 */
typedef struct {
    uint32_t row, shift, shifts;
} LhSymmetry;

/* A program for all ranks. Immutable once made. */
struct _LhProgram {
    char *name; /* owned: name of the schedule or of the file */
    const LhGenerator *generator;
    const LhClosedForms *closed;  /* NULL for an explicit program, ... */
    uint64_t *claimed[LH_CLAIMS]; /* ... which may claim totals per rank instead; owned; NULL: not
                                     stated */
    LhProgramParams params;
    LhPlacement placement;
    /* Numbers of equal slices that tensors are split into by heads; 0 and 1: not split. Each KV
     * slice serves head_slices / kv_slices consecutive slices of query heads. */
    uint32_t head_slices, kv_slices;
    LhSlot *slots; /* owned */
    uint32_t slots_count;
    LhStream streams[LH_STREAMS_MAX];
    uint32_t streams_count;
    uint64_t *document_ends; /* owned; params.mask refers to them */
    /*
     * Size of the groups of consecutive ranks that exchange heads for tokens; 0: none. Their
     * forward pass saves tensors by heads: all segments of the group, for the slices that the rank
     * works on. Slots marked by_heads have that form in the inputs of a backward pass alone and in
     * the outputs of a forward pass with keep_saved.
     */
    uint32_t saved_group;
    /*
     * Embedded programs, indexed by an op's `module` - 1; entries may be NULL. An embedded program
     * defines the sizes and slices of its ops, not this one. Borrowed from the plan.
     */
    const LhProgram *const *modules;
    uint32_t modules_count;
    LhSymmetry symmetry;
    /* Description of the training step (step/graph.h); NULL: not a training step. Borrowed from
     * the plan. */
    const struct _LhStepPlan *step;
    /* Texts of the options it was made with, for the record. Owned; NULL: none. */
    char **record;
    void *plan; /* the generator's own data, computed once */
    GDestroyNotify plan_free;
};

/* Whether an op belongs to an embedded program. */
static inline bool
lh_program_embeds(const LhProgram *program, const LhOp *op)
{
    return op->module > 0 && op->module <= program->modules_count;
}

/* The program that defines an op's sizes, slices and placement. Slots are @program's. */
static inline const LhProgram *
lh_program_of_op(const LhProgram *program, const LhOp *op)
{
    return lh_program_embeds(program, op) ? program->modules[op->module - 1] : program;
}

/* Whether a kernel runs on the host's CPU: that is where its operands are, unless it is a copy
 * between the two memories. */
static inline bool
lh_op_on_cpu(const LhProgram *program, const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE && op->compute.regions_count > 0 &&
           program->slots[op->compute.regions[0].slot].on_host &&
           lh_kernels[op->compute.kernel]->args != LH_ARGS_COPY;
}

/* Creates an empty program for @params, whose documents it copies. The caller adds the
 * declarations and frees. */
LhProgram *lh_program_create(const char *name, const LhGenerator *generator,
                             const LhProgramParams *params, LhPlacementKind placement);
void lh_program_free(LhProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhProgram, lh_program_free)

/* A slot to declare; lh_program_add_slot() returns its index. */
typedef struct {
    const char *name; /* shorter than LH_SLOT_NAME_BYTES */
    LhTensorKind kind;
    LhSlotRole role;
    LhDtype dtype;
    uint32_t head_dim; /* 0: the program's */
    bool by_heads;
    bool on_host;
    LhCategory category;
    uint32_t parts;
    uint64_t part_bytes;
    uint32_t first_rank, ranks_count; /* as in LhSlot */
} LhSlotParams;
uint16_t lh_program_add_slot(LhProgram *program, LhSlotParams slot);

/* Returns the stream's index. */
uint8_t lh_program_add_stream(LhProgram *program, const char *name, LhStreamKind kind);

/* Checks the rules that all programs keep. Fails with LH_ERROR_NO; the message has no name in
 * front. */
bool lh_program_check(LhPlacementKind placement, const LhProgramParams *params, GError **error);

/* Sets LH_ERROR_NO with a message; returns false. */
bool lh_program_refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The total that the program claims for @rank (among all ranks); false if it claims none. */
bool lh_program_claim(const LhProgram *program, LhClaim claim, uint32_t rank, uint64_t *value);

/* The number of ranks of all groups; the index of @rank in its group. */
uint32_t lh_program_ranks(const LhProgram *program);
uint32_t lh_program_group_rank(const LhProgram *program, uint32_t rank);

/* The ranks of the group that @rank belongs to. */
LhGroup lh_program_group(const LhProgram *program, uint32_t rank);

/* The number of parts of all slots of a rank. */
uint32_t lh_program_cells(const LhProgram *program);

/* Whether a rank has the slot. */
static inline bool
lh_slot_is_on(const LhSlot *slot, uint32_t rank)
{
    return slot->ranks_count == 0 ||
           (rank >= slot->first_rank && rank - slot->first_rank < slot->ranks_count);
}

/* Whether a slot is filled before the program runs; and whether it is read after its end. */
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

/* Whether a region of the slot may name one half. */
static inline bool
lh_slot_has_halves(const LhSlot *slot)
{
    return slot->kind == LH_TENSOR_KV || slot->kind == LH_TENSOR_DKV;
}

/* Device bytes of a region, per part and in total. */
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
