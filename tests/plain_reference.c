/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_reference.h"

#include <glib.h>

#include <math.h>

/* One query row and head against the keys [first, first + count) of its group. */
typedef struct {
    LhReference *r;
    uint64_t row;   /* of the query, in every tensor */
    uint64_t first; /* row of the first of its keys */
    uint64_t count;
    double *p, *dp; /* [count] probabilities and their gradients */
} Row;

static double
dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void
forward_row(const Row *row, double scale)
{
    LhReference *r = row->r;
    const uint32_t d = r->attention.head_dim;
    const uint64_t q = row->row * r->stride;
    double max = -INFINITY, sum = 0;

    for (uint64_t j = 0; j < row->count; j++) {
        row->p[j] = scale * dot(r->q + q, r->k + (row->first + j) * r->stride, d);
        max = fmax(max, row->p[j]);
    }
    for (uint64_t j = 0; j < row->count; j++) {
        row->p[j] = exp(row->p[j] - max);
        sum += row->p[j];
    }
    r->lse[row->row] = max + log(sum);
    for (uint64_t j = 0; j < row->count; j++) {
        row->p[j] /= sum;
        for (uint32_t i = 0; i < d; i++)
            r->o[q + i] += row->p[j] * r->v[(row->first + j) * r->stride + i];
    }
}

static void
backward_row(const Row *row, double scale)
{
    LhReference *r = row->r;
    const uint32_t d = r->attention.head_dim;
    const uint64_t q = row->row * r->stride;
    double delta = 0;

    for (uint64_t j = 0; j < row->count; j++) {
        row->dp[j] = dot(r->dout + q, r->v + (row->first + j) * r->stride, d);
        delta += row->p[j] * row->dp[j];
    }
    for (uint64_t j = 0; j < row->count; j++) {
        const uint64_t k = (row->first + j) * r->stride;
        const double ds = scale * row->p[j] * (row->dp[j] - delta);

        for (uint32_t i = 0; i < d; i++) {
            r->dq[q + i] += ds * r->k[k + i];
            r->dk[k + i] += ds * r->q[q + i];
            r->dv[k + i] += row->p[j] * r->dout[q + i];
        }
    }
}

/* The query's rows and their squared norms. */
typedef struct {
    const double *dout, *o, *dq;
    double q2, dout2;
} Query;

static Query
query_of(const Row *row)
{
    const LhReference *r = row->r;
    const uint64_t at = row->row * r->stride;
    const uint32_t d = r->attention.head_dim;

    return (Query){ .dout = r->dout + at,
                    .o = r->o + at,
                    .dq = r->dq + at,
                    .q2 = dot(r->q + at, r->q + at, d),
                    .dout2 = dot(r->dout + at, r->dout + at, d) };
}

/* Sets the sizes of the terms of the row's results (LhReference). */
static void
size_row(const Row *row, double scale)
{
    LhReference *r = row->r;
    const uint32_t d = r->attention.head_dim;
    const Query q = query_of(row);
    g_autofree double *pk = g_new0(double, d);
    double pv2 = 0, ek2 = 0, delta = 0, spread = 0, delta2;

    for (uint32_t i = 0; i < d; i++) {
        delta += q.dout[i] * q.o[i];
        spread += q.dout[i] * q.dout[i] * q.o[i] * q.o[i];
    }
    for (uint64_t j = 0; j < row->count; j++) {
        const double *v = r->v + (row->first + j) * r->stride;

        pv2 += row->p[j] * row->p[j] * dot(v, v, d);
    }
    delta2 = fmax(spread, q.dout2 * pv2 / d);
    for (uint64_t j = 0; j < row->count; j++) {
        const uint64_t key = row->first + j;
        const double *k = r->k + key * r->stride;
        const double p2 = row->p[j] * row->p[j];
        const double e2 = p2 * (row->dp[j] * row->dp[j] + delta * delta) * scale * scale;

        for (uint32_t i = 0; i < d; i++)
            pk[i] += row->p[j] * k[i];
        ek2 += e2 * dot(k, k, d);
        r->dk_size2[key] += e2 * q.q2;
        r->dv_size2[key] += p2 * q.dout2;
        r->dk_delta2[key] += scale * scale * p2 * delta2 * q.q2;
    }
    r->delta[row->row] = delta;
    r->delta_size2[row->row] = delta2;
    r->o_size2[row->row] = fmax(dot(q.o, q.o, d), pv2);
    r->dq_size2[row->row] = fmax(dot(q.dq, q.dq, d), ek2);
    r->dq_delta2[row->row] = scale * scale * delta2 * dot(pk, pk, d);
}

/* Linear attention: o_i = sum over j <= i of decay^(i-j) (q_i k_j) v_j, and the gradients of
 * sum(o * do). */
static void
linear_row(const Row *row, double decay)
{
    LhReference *r = row->r;
    const uint32_t d = r->attention.head_dim;
    const uint64_t q = row->row * r->stride;
    double weight = 1;

    for (uint64_t j = row->count; j-- > 0; weight *= decay) {
        const uint64_t k = (row->first + j) * r->stride;
        const double score = weight * dot(r->q + q, r->k + k, d);
        const double dscore = weight * dot(r->dout + q, r->v + k, d);

        for (uint32_t i = 0; i < d; i++) {
            r->o[q + i] += score * r->v[k + i];
            r->dq[q + i] += dscore * r->k[k + i];
            r->dk[k + i] += dscore * r->q[q + i];
            r->dv[k + i] += score * r->dout[q + i];
        }
    }
}

static void
size_linear_row(const Row *row, double decay)
{
    LhReference *r = row->r;
    const uint32_t d = r->attention.head_dim;
    const Query q = query_of(row);
    double weight = 1, o2 = 0, dq2 = 0;

    for (uint64_t j = row->count; j-- > 0; weight *= decay) {
        const uint64_t key = row->first + j;
        const double *k = r->k + key * r->stride, *v = r->v + key * r->stride;
        const double k2 = dot(k, k, d), v2 = dot(v, v, d);
        const double p2 = weight * weight * q.q2 * k2 / d, e2 = weight * weight * q.dout2 * v2 / d;

        o2 += p2 * v2;
        dq2 += e2 * k2;
        r->dk_size2[key] += e2 * q.q2;
        r->dv_size2[key] += p2 * q.dout2;
    }
    r->o_size2[row->row] = fmax(dot(q.o, q.o, d), o2);
    r->dq_size2[row->row] = fmax(dot(q.dq, q.dq, d), dq2);
}

static void
run_row(Row *row, uint64_t sequence, uint32_t head, uint64_t i)
{
    LhReference *r = row->r;
    const LhAttention *a = &r->attention;
    const LhInterval keys =
        a->linear ? (LhInterval){ 0, i + 1 } : lh_mask_keys(&r->mask, i, a->seq_length);
    const double scale = lh_attention_scale(a->scale, a->head_dim);

    row->row = lh_reference_row(r, sequence, head, a->heads, i);
    row->first =
        lh_reference_row(r, sequence, head / (a->heads / a->groups), a->groups, keys.first);
    row->count = keys.end - keys.first;
    if (a->linear) {
        const double decay = a->decay > 0 && a->decay < 1 ? a->decay : 1;

        linear_row(row, decay);
        size_linear_row(row, decay);
        return;
    }
    forward_row(row, scale);
    backward_row(row, scale);
    size_row(row, scale);
}

/* The size of a key's sum is at least the norm of the sum. */
static void
size_key(LhReference *r, uint64_t row)
{
    const double *dk = r->dk + row * r->stride, *dv = r->dv + row * r->stride;
    const uint32_t d = r->attention.head_dim;

    r->dk_size2[row] = fmax(dot(dk, dk, d), r->dk_size2[row]);
    r->dv_size2[row] = fmax(dot(dv, dv, d), r->dv_size2[row]);
}

void
plain_reference_run(LhReference *r)
{
    const LhAttention *a = &r->attention;
    g_autofree double *p = g_new(double, a->seq_length);
    g_autofree double *dp = g_new(double, a->seq_length);
    Row row = { .r = r, .p = p, .dp = dp };

    for (uint64_t sequence = 0; sequence < a->batch; sequence++)
        for (uint32_t head = 0; head < a->heads; head++)
            for (uint64_t i = 0; i < a->seq_length; i++)
                run_row(&row, sequence, head, i);
    for (uint64_t key = 0; key < lh_reference_k_rows(a); key++)
        size_key(r, key);
}
