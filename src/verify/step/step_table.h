/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries on the table of a layer outside attention: which rows a layer has, and how many of them
 * add to one sum.
 */
#pragma once

#include "verify/step/step_values.h"

typedef enum {
    LH_TABLE_EMBED,
    LH_TABLE_FORWARD,
    LH_TABLE_HEAD,
    LH_TABLE_POST_BWD,
    LH_TABLE_PRE_BWD,
    LH_TABLE_EMBED_BWD,
    LH_TABLE_LAST_HEAD,
    LH_TABLES
} LhTable;

/* The rows of each table, up to LH_STEP_END. */
extern const LhStepNode *const lh_step_tables[LH_TABLES];

#define LH_EMBED_ROW 63 /* its bit among the forward rows */

/* A row for one layer and micro-batch; calls between rows and heads belong to one segment, calls of
 * a loop over tiles to one tile. */
typedef struct {
    LhTable table;
    uint32_t index;
    const LhStepNode *node;
    uint32_t rank, layer, micro_batch, turn;
} LhTableRow;

/* The number of times that a row of a loop over tiles is called for all rows of the rank; 1: it is
 * not tiled. */
uint32_t lh_table_turns(const LhStepValues *v, LhStepTiling tiling);

/* Whether a table applies to @layer, in this kind of step; the head's layer is the one after the
 * last. */
bool lh_table_has_layer(const LhStepValues *v, LhTable table, uint32_t layer);

/* Whether layers like @layer have the row and it calls a kernel. */
bool lh_table_has_row(const LhStepValues *v, const LhStepNode *node, uint32_t layer);

/* The number of calls of rows before @end (NULL: all) that add to the gradient of a weight. */
uint32_t lh_table_gradient_rows_before(const LhStepValues *v, LhStepWeight weight, uint32_t layer,
                                       const LhStepNode *end);

/* Whether a role is a term of a sum over tensor-parallel ranks. */
bool lh_table_is_sum(LhStepRole role);

/* The number of rows before @end that make a term of a role of @layer; @alone is the role's name
 * without tensor parallelism. */
uint32_t lh_table_makers_before(const LhStepValues *v, LhStepRole alone, uint32_t layer,
                                const LhStepNode *end);

/* The number of sublayers that the gradient of the residual stream has yet to pass when a row
 * begins. */
uint32_t lh_table_sublayers_ahead(const LhStepValues *v, const LhTableRow *row);

/* The number of calls in the model's layers that add to the gradient of @weight. */
uint32_t lh_table_gradient_rows(const LhStepValues *v, LhStepWeight weight, uint32_t layer);
/* The number of terms that a role of @layer (named without tensor parallelism) is the sum of; 1:
 * not a sum. */
uint32_t lh_table_role_terms(const LhStepValues *v, LhStepRole alone, uint32_t layer);
