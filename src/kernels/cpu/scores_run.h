/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of the products with scores in memory: all B h nq nk of them, whatever the mask.
 */
#pragma once

#include "kernels/cpu/rows.h"

/* Scores of an operand: query rows over the whole call, key columns in parts. */
typedef struct {
    LhRows rows; /* of one part; dim: its keys */
    uint32_t parts;
} LhScores;

/* Operands of a call's three products, each of which computes one from the other two. */
typedef struct {
    const LhKernelArgs *args;
    LhScores scores;
    LhRows q;  /* by query row: q, do; o or dq */
    LhRows k;  /* by key: k, v; dk or dv */
    bool load; /* the sum already holds earlier keys */
    void *scratch;
} LhScoresProduct;

static inline LhScores
lh_scores_of(const LhCall *call, unsigned operand)
{
    const LhKernelArgs *a = call->args;
    const LhView *view = &call->operands[operand];
    const uint32_t keys = (uint32_t)(a->nk / view->parts);

    return (LhScores){ .rows = { .data = view->data,
                                 .part_bytes = view->part_bytes,
                                 .part_rows = a->nq,
                                 .heads = a->heads,
                                 .dim = keys,
                                 .storage = view->storage },
                       .parts = view->parts };
}

/* Returns one row of one head in part @part: one score per key of the part. */
static inline void *
lh_scores_at(const LhScores *s, uint64_t sequence, uint64_t row, uint32_t head, uint32_t part)
{
    return (unsigned char *)lh_rows_at(&s->rows, sequence, row, head) + part * s->rows.part_bytes;
}

/* Read and write a whole row: copy between its parts and @row of nk numbers. */
void lh_scores_load(const LhScores *s, double *row, uint64_t sequence, uint64_t i, uint32_t head);
void lh_scores_store(const LhScores *s, const double *row, uint64_t sequence, uint64_t i,
                     uint32_t head);

/*
 * Sets @p to the call's operands: scores, by query row, by key. Returns false if their parts do not
 * divide the rows.
 */
bool lh_scores_prepare(const LhCall *call, unsigned scores, unsigned q, unsigned k,
                       LhScoresProduct *p);

/* scores = q k^T; q = (q +) scores k; k = scores^T q. In fp64, or fast. */
void lh_scores_reference(const LhScoresProduct *p);
void lh_scores_fast(const LhScoresProduct *p);
void lh_scores_apply_reference(const LhScoresProduct *p);
void lh_scores_apply_fast(const LhScoresProduct *p);
void lh_scores_transposed_reference(const LhScoresProduct *p);
void lh_scores_transposed_fast(const LhScoresProduct *p);

/* Scratch bytes of both versions of the products; of a row in fp64. */
uint64_t lh_scores_scratch(const LhKernelArgs *args);
uint64_t lh_scores_row_scratch(const LhKernelArgs *args);
