/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of a whole sequence on one device in fp64, forward and backward. The results of
 * distributed runs are compared with it. It shares nothing with the kernels: its own tiles, its own
 * exponential (reference_tiles.c); the tests hold it against attention written out from its
 * definition (tests/plain_reference.c).
 *
 * Beside each row of a result it says how large the numbers are that the row is a sum of: what the
 * rounding of a kernel that is right is proportional to (tolerance.h).
 */
#pragma once

#include "model/attention.h"
#include "model/mask.h"

/*
 * Whole tensors by heads: q, o, dout, dq [B][h][N][stride]; k, v, dk, dv [B][g][N][stride]; numbers
 * of a row [B][h][N] or [B][g][N]. Positions in order. The stride is d, rounded up; what lies
 * between is 0.
 */
typedef struct {
    LhAttention attention;
    LhMaskRule mask; /* its documents are borrowed */
    uint32_t stride;
    double *q, *k, *v, *dout; /* in */
    double *o, *lse, *dq, *dk, *dv;
    double *delta; /* by query: sum of o do */
    double *peak;  /* by query: the largest logit, or what stands for it where only lse is known */
    /*
     * Squares. With p of a pair and e^2 = p^2 (dp^2 + delta^2) scale^2 (linear attention:
     * p^2 is that of a weight as large as the norms of q and k make it, e^2 likewise of do and v):
     * the larger of the row's own norm and the sum of p^2 |v|^2 (o), e^2 |k|^2 (dq), e^2 |q|^2
     * (dk), p^2 |do|^2 (dv), which its terms would have if they did not cancel.
     */
    double *o_size2, *dq_size2, *dk_size2, *dv_size2;
    /* Squares: of delta, if every element of o were off by as much as it is large; of dq and dk,
     * if delta were off by that. */
    double *delta_size2, *dq_delta2, *dk_delta2;
    double logit_size;  /* no logit is larger */
    double input_size2; /* nor a squared norm of a row of the inputs */
} LhReference;

/* All tensors of zeros. */
void lh_reference_init(LhReference *reference, const LhAttention *attention,
                       const LhMaskRule *mask);
void lh_reference_clear(LhReference *reference);

/* What is computed. All zero: everything, on one thread. */
typedef struct {
    const uint8_t *queries, *keys; /* which rows, by their index; NULL: all */
    bool forward;                  /* o and lse alone */
    unsigned threads;              /* that work on it; 0: one */
    uint64_t room_bytes;           /* for numbers of pairs; 0: as lh_reference_work_bytes() says */
} LhReferenceWork;

/*
 * Computes from the inputs, for the rows of queries, o, lse, delta, dq and what they say of
 * themselves; and then for those of keys dk and dv, for which lse, peak, delta and delta_size2 of
 * all queries must be known.
 */
void lh_reference_queries(LhReference *reference, const LhReferenceWork *work);
void lh_reference_keys(LhReference *reference, const LhReferenceWork *work);

/* Both, to the bit. All rows cost less, since pairs of queries and keys are computed once. */
void lh_reference_run(LhReference *reference, const LhReferenceWork *work);

/* What a reference takes, and what work on it takes beside, at most. They saturate. */
uint64_t lh_reference_bytes(const LhAttention *attention);
uint64_t lh_reference_work_bytes(const LhAttention *attention, unsigned threads);

/* Linear attention: the d x d state before token @position, into @state. */
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

/* The row of a token in tensors of @heads heads. */
static inline uint64_t
lh_reference_row(const LhReference *r, uint64_t sequence, uint32_t head, uint32_t heads,
                 uint64_t token)
{
    return (sequence * heads + head) * r->attention.seq_length + token;
}
