/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows, widths and bytes of everything that the tables of a layer name.
 */
#pragma once

#include "step/graph.h"

/* A weight's matrix on a tensor-parallel rank, rows x columns; vectors have one row. 0 x 0: the
 * layer (ignored for weights that belong to none) has none. */
typedef struct {
    uint64_t rows, columns;
    uint32_t replicas; /* so many tensor-parallel ranks in a row have the same; 1: nobody else */
    uint32_t experts; /* so many matrices of equal rows, one below the other; 0: one, of all rows */
} LhStepMatrix;
LhStepMatrix lh_step_matrix(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer);

/* The arguments of a product of all rows of the rank with a matrix: m, n, k and experts. */
LhKernelArgs lh_step_product(const LhStepPlan *plan, const LhStepMatrix *matrix);

/* The weight that holds the matrix of @weight: the embedding's, for a tied head. */
LhStepWeight lh_step_held_weight(const LhStepPlan *plan, LhStepWeight weight);

/* Columns of the vocabulary on a tensor-parallel rank; the last one's may go beyond its end. */
uint64_t lh_step_vocabulary(const LhStepPlan *plan);

/* Features of a layer. */
uint32_t lh_step_features(const LhStepPlan *plan, uint32_t layer);

/* Whether a layer has no experts. */
bool lh_step_is_dense(const LhStepPlan *plan, uint32_t layer);

/* Experts that a router chooses among, and how many it chooses for each row; 0: there are none. */
uint32_t lh_step_experts(const LhStepPlan *plan);
uint32_t lh_step_choices(const LhStepPlan *plan);

/* In which gradients of weights are kept and reduced. */
LhDtype lh_step_gradient_dtype(const LhStepPlan *plan);

/* Pieces that a weight, or its gradient, is cut into. */
uint32_t lh_step_pieces(const LhStepPlan *plan);

/* How a role's rows lie: which parts of a slot are whose rows. */
typedef struct {
    LhStepRole alone;  /* what it is without tensor parallelism: the sum, or the rank's own rows */
    bool of_attention; /* parts are as attention's programs say; else by segments ... */
    bool full;         /* ... and, of rows of the tensor-parallel group, by its members */
    bool sliced;       /* they are those of the tensor-parallel rank alone: columns, or a term */
    bool undivided;    /* one part for all rows, or (`full`) one for the columns of each member */
} LhStepRows;
LhStepRows lh_step_rows(LhStepRole role);
