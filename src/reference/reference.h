/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of a whole sequence on one device in fp64, forward and backward. The results of
 * distributed runs are compared with it. It shares no code with the kernels and has its own tiles
 * and exponential (reference_tiles.c). Tests compare it with a direct implementation of the
 * definition (tests/plain_reference.c).
 *
 * For each result row it also computes the size of the terms of its sums, to which the rounding
 * errors of a correct kernel are proportional (tolerance.h).
 */
#pragma once

#include "model/attention.h"
#include "model/mask.h"

/*
 * Whole tensors by heads: q, o, dout, dq [B][h][N][stride]; k, v, dk, dv [B][g][N][stride]; numbers
 * per row [B][h][N] or [B][g][N]. Positions are in order. The stride is d rounded up; the padding
 * is 0.
 */
typedef struct {
    LhAttention attention;
    LhMaskRule mask; /* its documents are borrowed */
    /* [B], in place of the mask's documents, borrowed; NULL: those of the mask in all sequences. */
    const LhDocumentPack *packs;
    uint32_t stride;
    double *q, *k, *v, *dout; /* inputs */
    double *o, *lse, *dq, *dk, *dv;
    double *delta; /* by query: sum of o do */
    double *peak;  /* by query: the largest logit, or a substitute if only lse is known */
    /*
     * Squared sizes. With p of a pair and e^2 = p^2 (dp^2 + delta^2) scale^2 (linear attention: p^2
     * of a weight as large as the norms of q and k allow, e^2 likewise of do and v): the maximum of
     * the row's squared norm and the sum of p^2 |v|^2 (o), e^2 |k|^2 (dq), e^2 |q|^2 (dk), p^2
     * |do|^2 (dv), which is the squared norm if terms do not cancel.
     */
    double *o_size2, *dq_size2, *dk_size2, *dv_size2;
    /*
     * Squares: error of delta if every element of o had a relative error of 1; errors of dq and dk
     * that this error of delta causes.
     */
    double *delta_size2, *dq_delta2, *dk_delta2;
    double logit_size;  /* upper bound of the logits */
    double input_size2; /* upper bound of the squared norms of input rows */
} LhReference;

/* Initialises @reference with all tensors zero. */
void lh_reference_init(LhReference *reference, const LhAttention *attention,
                       const LhMaskRule *mask);
void lh_reference_clear(LhReference *reference);

/* What to compute. All zero: everything, on one thread. */
typedef struct {
    const uint8_t *queries, *keys; /* rows, by index; NULL: all */
    bool forward;                  /* o and lse only */
    unsigned threads;              /* 0: one */
    uint64_t room_bytes;           /* for pairs; 0: the default, which lh_reference_work_bytes()
                                      includes */
} LhReferenceWork;

/*
 * Compute from the inputs: for the rows of queries o, lse, delta, dq and their sizes; then for the
 * rows of keys dk and dv and theirs, which needs lse, peak, delta and delta_size2 of all queries.
 */
void lh_reference_queries(LhReference *reference, const LhReferenceWork *work);
void lh_reference_keys(LhReference *reference, const LhReferenceWork *work);

/*
 * Computes both, with bitwise equal results. All rows at once are cheaper: pairs of queries and
 * keys are computed once.
 */
void lh_reference_run(LhReference *reference, const LhReferenceWork *work);

/* Upper bounds of the bytes of a reference, and of the work on it. They saturate. */
uint64_t lh_reference_bytes(const LhAttention *attention);
uint64_t lh_reference_work_bytes(const LhAttention *attention, unsigned threads);

/* Linear attention: writes the d x d state before token @position to @state. */
void lh_reference_state(const LhReference *reference, uint64_t sequence, uint32_t head,
                        uint64_t position, double *state);

static inline uint64_t
lh_reference_q_rows(const LhAttention *a)
{
    return a->batch * a->seq_length * a->heads;
}

static inline uint64_t
lh_reference_k_rows(const LhAttention *a)
{
    return a->batch * a->seq_length * a->groups;
}

/* Returns the row of a token in tensors of @heads heads. */
static inline uint64_t
lh_reference_row(const LhReference *r, uint64_t sequence, uint32_t head, uint32_t heads,
                 uint64_t token)
{
    return (sequence * heads + head) * r->attention.seq_length + token;
}
