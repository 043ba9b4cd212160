/*
 * Attention of a whole sequence on one device in fp64, forward and backward, written out from its
 * definition. The results of distributed runs are compared with it. It shares nothing with the
 * kernels.
 */
#pragma once

#include "model/attention.h"
#include "model/mask.h"

/* Whole tensors: q, o, dout, dq [B][N][h][d]; k, v, dk, dv [B][N][g][d]; lse [B][N][h]. Positions
 * in order. */
typedef struct {
    LhAttention attention;
    LhMaskRule mask;          /* its documents are borrowed */
    double *q, *k, *v, *dout; /* in */
    double *o, *lse, *dq, *dk, *dv;
    /* Sums of the magnitudes of what the elements above are sums of. */
    double *o_size, *dq_size, *dk_size, *dv_size;
} LhReference;

/* All tensors of zeros. */
void lh_reference_init(LhReference *reference, const LhAttention *attention,
                       const LhMaskRule *mask);
void lh_reference_clear(LhReference *reference);

/* Computes the outputs from the inputs; uses all processors. */
void lh_reference_run(LhReference *reference);

/* Linear attention: the query heads of one key-value head of one sequence; no lse. */
void lh_reference_run_linear(LhReference *reference, uint64_t sequence, uint32_t group);

/* Linear attention: the d x d state before token @position, into @state. */
void lh_reference_state(const LhReference *reference, uint64_t sequence, uint32_t head,
                        uint64_t position, double *state);

static inline uint64_t
lh_reference_q_elements(const LhAttention *a)
{
    return a->batch * a->seq_length * a->heads * a->head_dim;
}

static inline uint64_t
lh_reference_k_elements(const LhAttention *a)
{
    return a->batch * a->seq_length * a->groups * a->head_dim;
}

static inline uint64_t
lh_reference_rows(const LhAttention *a)
{
    return a->batch * a->seq_length * a->heads;
}
