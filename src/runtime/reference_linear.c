/*
 * Linear attention by its definition, in fp64: o_i = sum over j <= i of decay^(i-j) (q_i k_j) v_j,
 * and the gradients of sum(o * do). States by theirs: what all tokens before a position leave.
 */
#include "runtime/reference.h"

#include <glib.h>

#include <math.h>

static double
decay_of(const LhReference *r)
{
    const double decay = r->attention.decay;

    return decay > 0 && decay < 1 ? decay : 1;
}

/* Element of a query row, and of a key row, of one sequence and head. */
static uint64_t
row_at(const LhReference *r, uint64_t sequence, uint64_t token, uint32_t head, uint32_t heads)
{
    const LhAttention *a = &r->attention;

    return ((sequence * a->seq_length + token) * heads + head) * a->head_dim;
}

/* The pair of a query row and a key row, with the weight of their distance. */
static void
add_pair(LhReference *r, uint64_t q, uint64_t k, double weight)
{
    const uint32_t d = r->attention.head_dim;
    double score = 0, dscore = 0;

    for (uint32_t c = 0; c < d; c++) {
        score += weight * r->q[q + c] * r->k[k + c];
        dscore += weight * r->dout[q + c] * r->v[k + c];
    }
    for (uint32_t c = 0; c < d; c++) {
        r->o[q + c] += score * r->v[k + c];
        r->o_size[q + c] += fabs(score * r->v[k + c]);
        r->dq[q + c] += dscore * r->k[k + c];
        r->dq_size[q + c] += fabs(dscore * r->k[k + c]);
        r->dk[k + c] += dscore * r->q[q + c];
        r->dk_size[k + c] += fabs(dscore * r->q[q + c]);
        r->dv[k + c] += score * r->dout[q + c];
        r->dv_size[k + c] += fabs(score * r->dout[q + c]);
    }
}

void
lh_reference_run_linear(LhReference *r, uint64_t sequence, uint32_t group)
{
    const LhAttention *a = &r->attention;
    const uint32_t share = a->heads / a->groups;
    const double decay = decay_of(r);

    for (uint32_t head = group * share; head < (group + 1) * share; head++) {
        for (uint64_t i = 0; i < a->seq_length; i++) {
            double weight = 1;

            for (uint64_t j = i + 1; j-- > 0; weight *= decay)
                add_pair(r, row_at(r, sequence, i, head, a->heads),
                         row_at(r, sequence, j, group, a->groups), weight);
        }
    }
}

void
lh_reference_state(const LhReference *r, uint64_t sequence, uint32_t head, uint64_t position,
                   double *state)
{
    const LhAttention *a = &r->attention;
    const uint32_t d = a->head_dim, group = head / (a->heads / a->groups);
    const double decay = decay_of(r);

    for (uint32_t i = 0; i < d * d; i++)
        state[i] = 0;
    for (uint64_t j = 0; j < position; j++) {
        const uint64_t k = row_at(r, sequence, j, group, a->groups);

        for (uint32_t i = 0; i < d * d; i++)
            state[i] = decay * state[i] + r->k[k + i / d] * r->v[k + i % d];
    }
}
