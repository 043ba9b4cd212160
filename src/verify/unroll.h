/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unrolling: the ops of one rank after the other in the arrays of a proof.
 */
#pragma once

#include "program/cursor.h"
#include "verify/proof.h"

/* Ops that are being collected; the proof that gets them borrows or takes over the arrays. */
typedef struct {
    GArray *ops, *parts, *counts; /* of LhOp, LhPart, uint32_t */
} LhUnrolled;

void lh_unrolled_init(LhUnrolled *u);

/* Frees the arrays that are not NULL. */
void lh_unrolled_clear(LhUnrolled *u);

/* Appends one step of a rank. */
void lh_unrolled_add(const LhUnrolled *u, const LhOpBuffer *buffer);

/* Makes @op, of @buffer, refer to messages and counts that have been moved to these places of
 * larger arrays. */
void lh_unrolled_move(LhOp *op, const LhOpBuffer *buffer, uint32_t parts_first,
                      uint32_t counts_first);

/* Whether a step still fits the limits of a proof, beside what has been collected. */
bool lh_unrolled_fits(const LhUnrolled *u, const LhOpBuffer *buffer);

/* Sets the rank of @ops, which are @rank's, and the op of their messages, in arrays that exist. */
void lh_proof_index_ops(LhProof *proof, uint32_t rank, LhOpRange ops);

/* Adds the flops and bytes sent of @ops to the verdict. */
void lh_proof_count_work(LhProof *proof, LhOpRange ops);
