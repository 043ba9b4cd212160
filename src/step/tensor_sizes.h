/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows, widths and bytes of everything in the tables of a layer.
 */
#pragma once

#include "step/graph.h"

/* Matrix of a weight on a tensor-parallel rank, rows x columns; vectors have one row. 0 x 0: the
 * layer has no such weight. The layer is ignored for weights outside layers. */
typedef struct {
    uint64_t rows, columns;
    /* This many consecutive tensor-parallel ranks hold the same; 1: no replicas. */
    uint32_t replicas;
    uint32_t experts; /* number of stacked matrices with equal rows; 0: one matrix */
} LhStepMatrix;
LhStepMatrix lh_step_matrix(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/* Arguments of a product of all rows of the rank with a matrix: m, n, k and experts. */
LhKernelArgs lh_step_product(const LhStepPlan *plan, const LhStepMatrix *matrix);

/* The weight that stores the matrix of @weight: the embedding for a tied head. */
LhStepWeight lh_step_held_weight(const LhStepPlan *plan, LhStepWeight weight);

/* Vocabulary entries per tensor-parallel rank; those of the last rank may exceed the end. */
uint64_t lh_step_vocabulary(const LhStepPlan *plan);

/* Whether a layer has no experts. */
bool lh_step_is_dense(const LhStepPlan *plan, uint32_t layer);

/* Number of routed experts, and number that the router chooses per row; 0: none. */
uint32_t lh_step_experts(const LhStepPlan *plan);
uint32_t lh_step_choices(const LhStepPlan *plan);

/* Type in which weight gradients are kept and reduced. */
LhDtype lh_step_gradient_dtype(const LhStepPlan *plan);

/* Whether the optimizer updates an fp32 copy of the weights. */
bool lh_step_has_master(const LhStepPlan *plan);

/* Number of pieces that a weight, or its gradient, is cut into. */
uint32_t lh_step_pieces(const LhStepPlan *plan);

/* Layout of a role's rows: which parts of a slot hold which rows. */
typedef struct {
    LhStepRole alone;  /* role without tensor parallelism: the sum, or the rank's own rows */
    bool of_attention; /* parts are those of the attention programs; else parts are segments ... */
    bool full;         /* ... times members, for rows of the whole tensor-parallel group */
    bool sliced;       /* specific to the tensor-parallel rank: its columns, or its term of a sum */
    /* One part for all rows, or with `full` one for the columns of each member. */
    bool undivided;
    LhStepTiling tiling; /* the role has the rows of one tile of this loop */
    /* The last row of each sequence in the last segment, in one part; with `full` and not `sliced`
     * one for each member, whose rows they are; with both, those of the last member. */
    bool last;
} LhStepRows;
LhStepRows lh_step_rows(LhStepRole role);

/* Number of tiles of a loop, of which each row of its table is called once; 0: it is no loop. */
uint32_t lh_step_tiles(const LhStepPlan *plan, LhStepTiling tiling);

/* Parts of the rows of a segment and tensor-parallel rank: every role outside attention has them,
 * unless it is undivided. Tiles are whole numbers of such parts. */
uint32_t lh_step_cuts(const LhStepPlan *plan);
