/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic values of all cells in a training step. A cell is one part of one slot on one rank. The
 * possible values are defined by the model, its sizes and the table of a layer (step/graph.h)
 * alone, independent of how the builder has derived its calls.
 */
#pragma once

#include "step/graph.h"
#include "verify/proof.h"
#include "verify/step/step_sets.h"

typedef enum {
    LH_VALUE_NOTHING, /* not written */
    LH_VALUE_SUSPECT, /* the result of an op with a finding: causes no further findings */
    LH_VALUE_OWN,     /* internal buffers of attention, or unfinished results */
    LH_VALUE_ROLE,    /* an activation or its gradient */
    LH_VALUE_WEIGHT,
    LH_VALUE_GRADIENT,
    LH_VALUE_MASTER,
    LH_VALUE_MOMENTS,
    LH_VALUE_SCALES, /* of 8-bit moments */
    LH_VALUE_CLOCK,
    /* Muon (step_muon.c): its state; pieces before and after; matrices, with the number of steps
     * done as their micro-batch. */
    LH_VALUE_MOMENTUM,
    LH_VALUE_UPDATE,
    LH_VALUE_ORTHOGONAL,
    LH_VALUE_WHOLE,
    LH_VALUE_GRAM,
    LH_VALUE_POLYNOMIAL,
    LH_VALUE_TOKENS,
    LH_VALUE_TARGETS,
    LH_VALUE_LOSS,
    LH_VALUE_NORM,
} LhValueKind;

/*
 * Two values are the same thing if all fields but the set are equal. For a role the set contains
 * the terms of an incomplete sum; it is 0 if complete. For gradients, the loss and the norm it
 * always contains all terms.
 */
typedef struct {
    uint8_t kind;   /* LhValueKind */
    uint8_t what;   /* LhStepRole, named without tensor parallelism; LhStepWeight */
    uint16_t of;    /* weights and states: 0 before the optimizer, 1 after it; attention tensors:
                       number of slices */
    uint16_t layer; /* LH_STEP_DX: number of sublayers still to pass */
    uint16_t micro_batch; /* of activations */
    uint16_t cut;         /* of the rows of `piece`; of undivided roles: the tile */
    uint32_t replica;     /* of activations: the data-parallel rank whose batch it is */
    uint32_t segment;     /* of the sequence; of activations */
    uint32_t piece; /* rows of which tensor-parallel rank; slice of the heads; piece of a weight or
                       its states */
    uint32_t slice; /* columns of which tensor-parallel rank; LH_NONE: all */
    uint32_t set;
} LhValue;

typedef struct {
    LhValue value;
    uint32_t writer;      /* global op, or LH_NONE: initial value */
    uint16_t open;        /* instances of attention that have touched it and will again ... */
    uint16_t open_writes; /* ... and that will write it again */
} LhValueCell;

/* Size and layout of a weight of the model. */
typedef struct {
    uint64_t elements; /* on a tensor-parallel rank; 0: the layer does not have it */
    uint64_t piece;    /* elements of a piece; the last ones may have fewer */
    uint32_t replicas; /* consecutive tensor-parallel ranks that have the same */
    uint32_t held;     /* pieces that are not empty */
    uint32_t terms;    /* of its gradient */
    uint32_t first;    /* index of its first term in the norm of all gradients */
} LhWeightFacts;

struct _LhInstance;
struct _LhModuleRank;

typedef struct {
    LhProof *proof;
    const LhStepPlan *plan;
    const LhStepParams *params;
    const LhPlacement *placement; /* of a context-parallel group */
    uint32_t tensor, context, data, stages, micro_batches, layers, segments, cuts, pieces;
    uint32_t data_ranks; /* context x data parallel */
    LhSets sets;
    LhValueCell *cells;     /* [ranks * cells_count] */
    LhWeightFacts *weights; /* [layers * LH_STEP_W_LAYER + others] */
    uint32_t weights_count;
    uint32_t norm_terms;
    /* [ranks * micro_batches * (layers + 1) * turns]: bits of rows before the loss that have been
     * called; a row is called for each segment or tile, at most `turns` times. */
    uint64_t *made;
    uint32_t turns;
    uint32_t last_tile;       /* of the latest call of a loop over tiles */
    double epsilon;           /* of norms, the same for all; 0: none yet */
    const LhKernelArgs *adam; /* of the first optimizer call; NULL: none yet */
    /* step_modules.c */
    struct _LhModuleRank *parts_of; /* [modules * context] */
    GPtrArray *instances;           /* of struct _LhInstance */
    uint32_t *op_instance;          /* [ops_count] LH_NONE: the op is the step's own */
    /* step_moves.c: values in flight in messages of the step. */
    GArray *sent;         /* of LhValue */
    uint32_t *sent_first; /* [parts_count] of a sent message */
} LhStepValues;

/* Coordinates of a rank. */
typedef struct {
    uint32_t tensor, context, data, stage;
    uint32_t shard; /* index over context and data parallelism: which piece of weights it owns */
} LhValuePlace;

static inline LhValuePlace
lh_step_values_place(const LhStepValues *v, uint32_t rank)
{
    const uint32_t shard = rank / v->tensor % v->data_ranks;

    return (LhValuePlace){ .tensor = rank % v->tensor,
                           .context = shard % v->context,
                           .data = shard / v->context,
                           .stage = rank / v->tensor / v->data_ranks,
                           .shard = shard };
}

static inline LhValueCell *
lh_step_values_cell(const LhStepValues *v, uint32_t rank, uint32_t slot, uint32_t part)
{
    return &v->cells[(size_t)rank * v->proof->cells_count +
                     v->proof->program->slots[slot].first_cell + part];
}

#define FIND_VALUE_OF(values, op, slot, ...)                                                       \
    lh_proof_find((values)->proof, LH_FINDING_COVERAGE,                                            \
                  (LhFindingPlace){ (values)->proof->op_rank[op], op, (int32_t)(slot), LH_NONE },  \
                  __VA_ARGS__)
#define FIND_VALUE(op, slot, ...) FIND_VALUE_OF(v, op, slot, __VA_ARGS__)

/* Fills in facts and initial values. */
void lh_step_values_begin(LhStepValues *v);
/* Checks the values required at the end. */
void lh_step_values_check_end(LhStepValues *v);

bool lh_step_values_equal(const LhValue *a, const LhValue *b); /* ignoring the set */
/* "q_rows of layer 1, micro-batch 0, ..."; caller frees. */
char *lh_proof_value_text(const LhStepValues *v, const LhValue *value);

/* Read and write a part for the step's own op @op. Report a finding if attention is still at
 * work there. */
LhValue lh_step_values_take(LhStepValues *v, uint32_t op, uint32_t slot, uint32_t part);
void lh_step_values_put(LhStepValues *v, uint32_t op, uint32_t slot, uint32_t part, LhValue value);
/* The value of a part as @op finds it; @op may be the step's or attention's. */
LhValue lh_step_values_at(const LhStepValues *v, uint32_t op, uint32_t slot, uint32_t part);

uint32_t lh_step_values_weight_number(const LhStepValues *v, LhStepWeight weight, uint32_t layer);
const LhWeightFacts *lh_step_values_weight_facts(const LhStepValues *v, LhStepWeight weight,
                                                 uint32_t layer);
/* The number of elements of piece @piece. */
uint64_t lh_step_values_piece_size(const LhWeightFacts *facts, uint32_t piece);

/* The value of a weight, or of a tensor that belongs to one, on @rank. */
LhValue lh_step_values_of_weight(const LhStepValues *v, LhValueKind kind, LhStepWeight weight,
                                 uint32_t layer, uint32_t rank, uint32_t piece);

/* The complete value of part @part of @role on @rank, with @layer as in LhValue.layer; and the
 * number of parts. */
LhValue lh_step_values_of_role(const LhStepValues *v, LhStepRole role, uint32_t layer,
                               uint32_t micro_batch, uint32_t rank, uint32_t part);
uint32_t lh_step_values_role_parts(const LhStepValues *v, LhStepRole role, uint32_t layer);
/* The same for tokens and targets. */
LhValue lh_step_values_of_tokens(const LhStepValues *v, LhValueKind kind, uint32_t micro_batch,
                                 uint32_t rank, uint32_t part);
/* The value of part @part of slot @slot of attention's program @program on @rank, as a role. */
LhValue lh_step_values_of_attention(const LhStepValues *v, const LhProgram *program, uint32_t slot,
                                    uint32_t rank, uint32_t part);
