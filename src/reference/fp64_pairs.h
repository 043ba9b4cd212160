/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile of queries against a tile of keys: logits, weights, and gradients of weights of their
 * pairs. Queries are in vector lanes, keys in rows.
 */
#pragma once

#include "reference/fp64_products.h"

#include <math.h>

/* Queries of a task. Lanes without a query see nothing. */
typedef struct {
    const LhReferenceTask *task;
    size_t stride, columns;
    double *panel;
    const double *q, *dout; /* of the head */
    const double *q2, *dout2;
    double *q_lanes, *dout_lanes; /* packed; q is multiplied by the scale of logits */
    LhInterval sees[LH_REFERENCE_TILE];
    double peak[LH_REFERENCE_TILE], lse[LH_REFERENCE_TILE], delta[LH_REFERENCE_TILE];
    double share[LH_REFERENCE_TILE]; /* e^(peak - lse) */
} LhFp64Queries;

/* Up to LH_REFERENCE_TILE keys of the group. */
typedef struct {
    const double *k, *v;           /* [count][stride], readable up to a whole block of rows */
    const double *next_k, *next_v; /* of the next tile; may be NULL */
    double k2[LH_REFERENCE_TILE], v2[LH_REFERENCE_TILE];
    uint64_t at[LH_REFERENCE_TILE];
    size_t count;
} LhFp64Keys;

/* Takes the next @count numbers of a task's scratch. */
LH_FP64_STATIC double *
lh_fp64_take(double **scratch, size_t count)
{
    double *numbers = *scratch;

    *scratch += count;
    return numbers;
}

LH_FP64_STATIC size_t
lh_fp64_columns(const LhReferenceTask *t)
{
    return (t->count + LH_REFERENCE_PAD - 1) / LH_REFERENCE_PAD * LH_REFERENCE_PAD;
}

LH_FP64_STATIC LhFp64Queries
lh_fp64_queries(const LhReferenceTask *t, double **scratch)
{
    const LhReferenceInputs *in = t->in;
    const LhReference *r = in->r;
    const LhAttention *a = &r->attention;
    const uint64_t first = lh_reference_row(r, t->sequence, t->head, a->heads, 0);
    LhFp64Queries w = { .task = t,
                        .stride = r->stride,
                        .columns = lh_fp64_columns(t),
                        .panel =
                            lh_fp64_take(scratch, (size_t)LH_REFERENCE_PANEL * LH_REFERENCE_TILE),
                        .q = r->q + first * r->stride,
                        .dout = r->dout + first * r->stride,
                        .q2 = in->q2 + first,
                        .dout2 = in->dout2 + first,
                        .q_lanes = lh_fp64_take(scratch, LH_REFERENCE_TILE * r->stride),
                        .dout_lanes = lh_fp64_take(scratch, LH_REFERENCE_TILE * r->stride) };

    for (size_t i = 0; i < t->count; i++) {
        w.sees[i] = in->sees[t->sequence * a->seq_length + t->at[i]];
        w.peak[i] = r->peak[first + t->at[i]];
        w.lse[i] = r->lse[first + t->at[i]];
        w.delta[i] = r->delta[first + t->at[i]];
    }
    return w;
}

/* Packs rows of the task's queries into lanes, times @factor. */
LH_FP64_STATIC void
lh_fp64_gather(const LhFp64Queries *w, const double *tensor, double factor, double *lanes)
{
    const LhReferenceTask *t = w->task;
    size_t width;

    for (size_t first = 0; first < w->columns; first += width) {
        width = lh_fp64_vectors(w->columns - first) * LH_FP64_LANES;
        for (size_t i = 0; i < width; i++) {
            const double *row = first + i < t->count ? tensor + t->at[first + i] * w->stride : NULL;

            for (size_t c = 0; c < w->stride; c++)
                lanes[first * w->stride + c * width + i] = row != NULL ? factor * row[c] : 0;
        }
    }
}

LH_FP64_STATIC void
lh_fp64_gather_lanes(const LhFp64Queries *w)
{
    const LhReferenceInputs *in = w->task->in;

    lh_fp64_gather(w, w->q, in->decay != NULL ? 1 : in->scale, w->q_lanes);
    lh_fp64_gather(w, w->dout, 1, w->dout_lanes);
}

/*
 * tile[key][query] = rows of the keys times lanes of the queries. @next: rows of keys to prefetch;
 * may be NULL.
 */
LH_FP64_STATIC void
lh_fp64_scores(const LhFp64Queries *w, double *tile, const double *rows, size_t count,
               double *lanes, const double *next)
{
    const LhFp64Product p = { .c = tile,
                              .a = rows,
                              .panel = lanes,
                              .packed = true,
                              .c_stride = LH_REFERENCE_TILE,
                              .rows = count,
                              .columns = w->columns,
                              .depth = w->stride,
                              .next = next,
                              .next_count = LH_REFERENCE_TILE * w->stride };

    lh_fp64_product(&p, w->stride, 1);
}

/* sum[query][..] += tile[key][query] times the rows of the keys. */
LH_FP64_STATIC void
lh_fp64_weigh_by_query(const LhFp64Queries *w, double *sum, const double *tile, const double *rows,
                       size_t count, const double *next)
{
    const LhFp64Product p = { .c = sum,
                              .a = tile,
                              .b = rows,
                              .panel = w->panel,
                              .c_stride = w->stride,
                              .b_stride = w->stride,
                              .rows = w->columns,
                              .columns = w->stride,
                              .depth = count,
                              .add = true,
                              .next = next,
                              .next_count = LH_REFERENCE_TILE * w->stride };

    lh_fp64_product(&p, 1, LH_REFERENCE_TILE);
}

/* sum[key][..] += tile[key][query] times the rows of the queries, which must be consecutive. */
LH_FP64_STATIC void
lh_fp64_weigh_by_key(const LhFp64Queries *w, double *sum, const double *tile, const double *rows,
                     size_t count)
{
    const LhFp64Product p = { .c = sum,
                              .a = tile,
                              .b = rows + w->task->at[0] * w->stride,
                              .panel = w->panel,
                              .c_stride = w->stride,
                              .b_stride = w->stride,
                              .rows = count,
                              .columns = w->stride,
                              .depth = w->task->count,
                              .add = true };

    lh_fp64_product(&p, LH_REFERENCE_TILE, 1);
}

/* Sets the logits of masked pairs to -infinity. */
LH_FP64_STATIC void
lh_fp64_hide(const LhFp64Queries *w, const LhFp64Keys *keys, double *tile)
{
    for (size_t i = 0; i < w->columns; i++) {
        const LhInterval sees = w->sees[i];

        if (sees.first <= keys->at[0] && sees.end > keys->at[keys->count - 1])
            continue;
        for (size_t j = 0; j < keys->count; j++) {
            if (keys->at[j] < sees.first || keys->at[j] >= sees.end)
                tile[j * LH_REFERENCE_TILE + i] = -INFINITY;
        }
    }
}

/* Linear attention: returns the decay of a pair's weight and its gradient. */
LH_FP64_STATIC double
lh_fp64_decay_of(const LhFp64Queries *w, size_t i, uint64_t key)
{
    const LhReferenceTask *t = w->task;

    return i < t->count && t->at[i] >= key ? t->in->decay[t->at[i] - key] : 0;
}

LH_FP64_STATIC void
lh_fp64_decay(const LhFp64Queries *w, const LhFp64Keys *keys, double *tile)
{
    for (size_t j = 0; j < keys->count; j++)
        for (size_t i = 0; i < w->columns; i++)
            tile[j * LH_REFERENCE_TILE + i] *= lh_fp64_decay_of(w, i, keys->at[j]);
}

/* Computes logits; for linear attention, weights. */
LH_FP64_STATIC void
lh_fp64_find_scores(const LhFp64Queries *w, const LhFp64Keys *keys, double *tile)
{
    lh_fp64_scores(w, tile, keys->k, keys->count, w->q_lanes, keys->next_k);
    if (w->task->in->decay != NULL)
        lh_fp64_decay(w, keys, tile);
    else
        lh_fp64_hide(w, keys, tile);
}

/* Sums over the keys of each query. */
typedef struct {
    double sum[LH_REFERENCE_TILE], pv2[LH_REFERENCE_TILE],
        pk2[LH_REFERENCE_TILE];    /* of p, p^2 |v|^2, p^2 |k|^2; p without its share */
    double xk2[LH_REFERENCE_TILE]; /* of p^2 dp^2 |k|^2 */
    double *o, *dq, *pk; /* [LH_REFERENCE_TILE][stride]: of p v without its share, ds k, p k */
} LhFp64Sums;

LH_FP64_STATIC void
lh_fp64_find_share(LhFp64Queries *w)
{
    for (size_t i = 0; i < w->columns; i += LH_FP64_LANES)
        lh_fp64_store(w->share + i,
                      lh_fp64_exp(lh_fp64_load(w->peak + i) - lh_fp64_load(w->lse + i)));
}

/* Turns logits into weights relative to the peak: p without its share. @s may be NULL. */
LH_FP64_INLINE void
lh_fp64_find_weights(const LhFp64Queries *w, const LhFp64Keys *keys, double *tile, LhFp64Sums *s)
{
    for (size_t i = 0; i < w->columns; i += LH_FP64_LANES) {
        const LhFp64Vector peak = lh_fp64_load(w->peak + i);
        LhFp64Vector sum = lh_fp64_splat(0), pv2 = lh_fp64_splat(0), pk2 = lh_fp64_splat(0);

        for (size_t j = 0; j < keys->count; j++) {
            double *at = tile + j * LH_REFERENCE_TILE + i;
            const LhFp64Vector p = lh_fp64_exp(lh_fp64_load(at) - peak), p2 = p * p;

            lh_fp64_store(at, p);
            sum += p;
            pv2 += p2 * keys->v2[j];
            pk2 += p2 * keys->k2[j];
        }
        if (s != NULL) {
            lh_fp64_store(s->sum + i, lh_fp64_load(s->sum + i) + sum);
            lh_fp64_store(s->pv2 + i, lh_fp64_load(s->pv2 + i) + pv2);
            lh_fp64_store(s->pk2 + i, lh_fp64_load(s->pk2 + i) + pk2);
        }
    }
}

/* Computes p, and ds from it; for linear attention, the gradients of weights. @s may be NULL. */
LH_FP64_INLINE void
lh_fp64_find_gradients(const LhFp64Queries *w, const LhFp64Keys *keys, double *p, double *ds,
                       LhFp64Sums *s)
{
    lh_fp64_scores(w, ds, keys->v, keys->count, w->dout_lanes, keys->k);
    if (w->task->in->decay != NULL) {
        lh_fp64_decay(w, keys, ds);
        return;
    }
    for (size_t i = 0; i < w->columns; i += LH_FP64_LANES) {
        const LhFp64Vector share = lh_fp64_load(w->share + i), delta = lh_fp64_load(w->delta + i);
        LhFp64Vector xk2 = lh_fp64_splat(0);

        for (size_t j = 0; j < keys->count; j++) {
            double *at = p + j * LH_REFERENCE_TILE + i, *ds_at = ds + j * LH_REFERENCE_TILE + i;
            const LhFp64Vector weight = lh_fp64_load(at) * share, dp = lh_fp64_load(ds_at),
                               x = weight * dp;

            lh_fp64_store(at, weight);
            lh_fp64_store(ds_at, weight * (dp - delta));
            xk2 += x * x * keys->k2[j];
        }
        if (s != NULL)
            lh_fp64_store(s->xk2 + i, lh_fp64_load(s->xk2 + i) + xk2);
    }
}
