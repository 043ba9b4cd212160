/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of the reference, in fp64. A pair of a query and a key that it sees has a logit, the weight
 * p = e^(logit - lse), dp = do v and ds = p (dp - delta). A tile of queries computes the logits of
 * all its pairs; their weights relative to the largest logit, lse and o; and then, with delta = o
 * do, p, ds and dq. A tile of keys reads p and ds from there, or recomputes them from the peak, lse
 * and delta, with bitwise equal results. The queries of a tile are in vector lanes, so their sums
 * need no additions across a vector.
 */
#include "reference/fp64_pairs.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define JOIN_(a, b) lh_reference_##a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define LEVEL_NAME_(level) #level
#define LEVEL_NAME(level) LEVEL_NAME_(level)

/* ---- a tile of queries ---- */

/*
 * Iterates over all keys that the queries may see. Tiles begin at multiples of the tile size, so a
 * row's result does not depend on its task.
 */
typedef struct {
    const double *k, *v, *k2, *v2; /* of the group */
    uint64_t at, end, length;
    size_t stride;
    LhFp64Keys keys;
} Walk;

static Walk
walk_of(const LhReferenceTask *t, uint32_t group)
{
    const LhReferenceInputs *in = t->in;
    const LhReference *r = in->r;
    const LhAttention *a = &r->attention;
    const uint64_t first = lh_reference_row(r, t->sequence, group, a->groups, 0);
    const LhInterval seen = lh_reference_seen_by(t);

    return (Walk){ .k = r->k + first * r->stride,
                   .v = r->v + first * r->stride,
                   .k2 = in->k2 + first,
                   .v2 = in->v2 + first,
                   .at = seen.first,
                   .end = seen.end,
                   .length = a->seq_length,
                   .stride = r->stride };
}

/* Returns the next tile of keys, or NULL. */
static const LhFp64Keys *
next_keys(Walk *walk)
{
    LhFp64Keys *keys = &walk->keys;
    const uint64_t at = walk->at;

    if (at >= walk->end)
        return NULL;
    keys->count = walk->length - at < LH_REFERENCE_TILE ? walk->length - at : LH_REFERENCE_TILE;
    keys->k = walk->k + at * walk->stride;
    keys->v = walk->v + at * walk->stride;
    for (size_t j = 0; j < keys->count; j++) {
        keys->at[j] = at + j;
        keys->k2[j] = walk->k2[at + j];
        keys->v2[j] = walk->v2[at + j];
    }
    walk->at += LH_REFERENCE_TILE;
    keys->next_k = walk->at < walk->end ? walk->k + walk->at * walk->stride : NULL;
    keys->next_v = walk->at < walk->end ? walk->v + walk->at * walk->stride : NULL;
    return keys;
}

/* Updates the peaks of a vector's queries with a tile's logits. */
LH_FP64_INLINE void
climb(LhFp64Queries *w, size_t i, const double *tile, size_t count)
{
    LhFp64Vector peak = lh_fp64_load(w->peak + i);

    for (size_t j = 0; j < count; j++) {
        const LhFp64Vector logit = lh_fp64_load(tile + j * LH_REFERENCE_TILE + i);

        peak = lh_fp64_choose(logit > peak, logit, peak);
    }
    lh_fp64_store(w->peak + i, peak);
}

/*
 * Linear attention: sizes for weights as large as the norms of q and k allow, and likewise for do
 * and v.
 */
static void
size_decayed(const LhFp64Queries *w, LhFp64Sums *s, const LhFp64Keys *keys)
{
    const LhReferenceTask *t = w->task;

    for (size_t j = 0; j < keys->count; j++) {
        const double size2 = keys->k2[j] * keys->v2[j] / t->in->r->attention.head_dim;

        for (size_t i = 0; i < t->count; i++) {
            const double part = lh_fp64_decay_of(w, i, keys->at[j]);

            s->pv2[i] += part * part * size2 * w->q2[t->at[i]];
            s->xk2[i] += part * part * size2 * w->dout2[t->at[i]];
        }
    }
}

/* Computes o and its dependents of one query from the sums over all keys. */
static void
finish_forward(LhFp64Queries *w, LhFp64Sums *s, size_t i)
{
    const LhReferenceTask *t = w->task;
    const LhReferenceInputs *in = t->in;
    LhReference *r = in->r;
    const bool soft = in->decay == NULL;
    const uint64_t row = lh_reference_row(r, t->sequence, t->head, r->attention.heads, t->at[i]);
    const double *dout = w->dout + t->at[i] * w->stride, share = soft ? 1 / s->sum[i] : 1;
    double *o = r->o + row * w->stride, delta = 0, spread = 0;

    for (size_t c = 0; c < w->stride; c++) {
        o[c] = share * s->o[i * w->stride + c];
        delta += dout[c] * o[c];
        spread += dout[c] * dout[c] * o[c] * o[c];
    }
    s->pv2[i] *= share * share;
    s->pk2[i] *= share * share;
    r->o_size2[row] = fmax(lh_reference_norm2(o, w->stride), s->pv2[i]);
    if (!soft)
        return;
    r->peak[row] = w->peak[i];
    r->lse[row] = w->lse[i] = w->peak[i] + log(s->sum[i]);
    r->delta[row] = w->delta[i] = delta;
    r->delta_size2[row] = fmax(spread, in->dout2[row] * s->pv2[i] / r->attention.head_dim);
}

static void
finish_backward(const LhFp64Queries *w, const LhFp64Sums *s, size_t i)
{
    const LhReferenceTask *t = w->task;
    const LhReferenceInputs *in = t->in;
    LhReference *r = in->r;
    const bool soft = in->decay == NULL;
    const double scale = soft ? in->scale : 1, delta = w->delta[i];
    const uint64_t row = lh_reference_row(r, t->sequence, t->head, r->attention.heads, t->at[i]);
    double *dq = r->dq + row * w->stride;

    for (size_t c = 0; c < w->stride; c++)
        dq[c] = scale * s->dq[i * w->stride + c];
    r->dq_size2[row] = fmax(lh_reference_norm2(dq, w->stride),
                            scale * scale * (s->xk2[i] + (soft ? delta * delta * s->pk2[i] : 0)));
    if (soft)
        r->dq_delta2[row] = scale * scale * r->delta_size2[row] *
                            lh_reference_norm2(s->pk + i * w->stride, w->stride);
}

/* Returns the tile of a task's queries with the keys from @key on. */
static double *
tile_at(const LhReferenceTask *t, double *tiles, uint64_t key)
{
    return tiles + (key - lh_reference_seen_by(t).first) * LH_REFERENCE_TILE;
}

/* p and ds of a task's queries: a row of tiles for all keys, or a single tile, recomputed. */
typedef struct {
    double *p, *ds;
    bool p_row, ds_row;
} Tiles;

static double *
p_of(const LhFp64Queries *w, const Tiles *tiles, const LhFp64Keys *keys)
{
    return tiles->p_row ? tile_at(w->task, tiles->p, keys->at[0]) : tiles->p;
}

static double *
ds_of(const LhFp64Queries *w, const Tiles *tiles, const LhFp64Keys *keys)
{
    return tiles->ds_row ? tile_at(w->task, tiles->ds, keys->at[0]) : tiles->ds;
}

/* Finds the peaks, and the scores if they are kept. Linear attention has no peaks. */
static void
find_peaks(LhFp64Queries *w, Walk walk, const Tiles *tiles)
{
    const LhFp64Keys *keys;

    for (size_t i = 0; i < LH_REFERENCE_TILE; i++)
        w->peak[i] = -INFINITY;
    while (w->task->in->decay == NULL && (keys = next_keys(&walk)) != NULL) {
        double *p = p_of(w, tiles, keys);

        lh_fp64_find_scores(w, keys, p);
        for (size_t i = 0; i < w->columns; i += LH_FP64_LANES)
            climb(w, i, p, keys->count);
    }
    for (size_t i = 0; i < w->columns; i++) {
        if (w->peak[i] == -INFINITY) /* a lane that sees nothing */
            w->peak[i] = 0;
    }
}

static void
forward(LhFp64Queries *w, LhFp64Sums *s, Walk walk, const Tiles *tiles)
{
    const bool soft = w->task->in->decay == NULL;
    const LhFp64Keys *keys;

    find_peaks(w, walk, tiles);
    while ((keys = next_keys(&walk)) != NULL) {
        double *p = p_of(w, tiles, keys);

        if (!tiles->p_row || !soft)
            lh_fp64_find_scores(w, keys, p);
        if (soft)
            lh_fp64_find_weights(w, keys, p, s);
        else
            size_decayed(w, s, keys);
        lh_fp64_weigh_by_query(w, s->o, p, keys->v, keys->count, keys->next_v);
    }
    for (size_t i = 0; i < w->task->count; i++)
        finish_forward(w, s, i);
    if (soft)
        lh_fp64_find_share(w);
}

static void
backward(const LhFp64Queries *w, LhFp64Sums *s, Walk walk, const Tiles *tiles)
{
    const bool soft = w->task->in->decay == NULL;
    const LhFp64Keys *keys;

    while ((keys = next_keys(&walk)) != NULL) {
        double *p = p_of(w, tiles, keys), *ds = ds_of(w, tiles, keys);

        if (!tiles->p_row && soft) {
            lh_fp64_find_scores(w, keys, p);
            lh_fp64_find_weights(w, keys, p, NULL);
        }
        lh_fp64_find_gradients(w, keys, p, ds, s);
        lh_fp64_weigh_by_query(w, s->dq, ds, keys->k, keys->count, keys->next_v);
        if (soft)
            lh_fp64_weigh_by_query(w, s->pk, p, keys->k, keys->count, NULL);
    }
    for (size_t i = 0; i < w->task->count; i++)
        finish_backward(w, s, i);
}

static void
do_queries(const LhReferenceTask *t)
{
    const LhReferenceInputs *in = t->in;
    const LhAttention *a = &in->r->attention;
    const size_t rows = (size_t)LH_REFERENCE_TILE * in->r->stride;
    const Walk walk = walk_of(t, t->head / (a->heads / a->groups));
    double *scratch = t->scratch;
    LhFp64Queries w = lh_fp64_queries(t, &scratch);
    LhFp64Sums s = { .o = lh_fp64_take(&scratch, rows),
                     .dq = lh_fp64_take(&scratch, rows),
                     .pk = lh_fp64_take(&scratch, rows) };
    Tiles tiles = { .p_row = t->pairs != NULL || in->row, .ds_row = t->pairs != NULL };

    if (t->pairs != NULL) {
        tiles.p = t->pairs;
        tiles.ds = t->pairs + LH_REFERENCE_TILE * in->widest;
    } else {
        tiles.ds = lh_fp64_take(&scratch, LH_REFERENCE_TILE * LH_REFERENCE_TILE);
        tiles.p = lh_fp64_take(&scratch, LH_REFERENCE_TILE * LH_REFERENCE_TILE); /* the first tile
                                                                                    of a row */
    }
    memset(s.o, 0, rows * sizeof(double));
    memset(s.dq, 0, rows * sizeof(double));
    memset(s.pk, 0, rows * sizeof(double));
    lh_fp64_gather_lanes(&w);
    forward(&w, &s, walk, &tiles);
    if (!in->forward)
        backward(&w, &s, walk, &tiles);
}

/* ---- a tile of keys ---- */

/* Query data for the sizes of the keys' sums. */
typedef struct {
    double q2[LH_REFERENCE_TILE], dout2[LH_REFERENCE_TILE], delta2[LH_REFERENCE_TILE];
} Sizes;

static Sizes
sizes_of(const LhFp64Queries *w)
{
    const LhReferenceTask *t = w->task;
    const LhReference *r = t->in->r;
    const uint64_t first = lh_reference_row(r, t->sequence, t->head, r->attention.heads, 0);
    Sizes s = { .q2 = { 0 } };

    for (size_t i = 0; i < t->count; i++) {
        s.q2[i] = w->q2[t->at[i]];
        s.dout2[i] = w->dout2[t->at[i]];
        s.delta2[i] = r->delta_size2[first + t->at[i]] * s.q2[i];
    }
    return s;
}

static double
sum_of(LhFp64Vector x)
{
    double sum = 0;

    for (size_t i = 0; i < LH_FP64_LANES; i++)
        sum += x[i];
    return sum;
}

/* Adds to the sizes of a key: e^2 = p^2 (dp^2 + delta^2) follows from ds = p (dp - delta). */
LH_FP64_INLINE void
size_key(const LhFp64Queries *w, const Sizes *s, const double *p, const double *ds, uint64_t row)
{
    const LhReference *r = w->task->in->r;
    LhFp64Vector dk2 = lh_fp64_splat(0), dv2 = lh_fp64_splat(0), delta2 = lh_fp64_splat(0);

    for (size_t i = 0; i < w->columns; i += LH_FP64_LANES) {
        const LhFp64Vector weight = lh_fp64_load(p + i), delta = lh_fp64_load(w->delta + i);
        const LhFp64Vector x = lh_fp64_load(ds + i) + weight * delta, weight2 = weight * weight;

        dv2 += weight2 * lh_fp64_load(s->dout2 + i);
        dk2 += (x * x + weight2 * (delta * delta)) * lh_fp64_load(s->q2 + i);
        delta2 += weight2 * lh_fp64_load(s->delta2 + i);
    }
    r->dk_size2[row] += sum_of(dk2);
    r->dv_size2[row] += sum_of(dv2);
    r->dk_delta2[row] += sum_of(delta2);
}

static void
size_decayed_key(const LhFp64Queries *w, const Sizes *s, const LhFp64Keys *keys, size_t j,
                 uint64_t row)
{
    const LhReference *r = w->task->in->r;

    for (size_t i = 0; i < w->task->count; i++) {
        const double part = lh_fp64_decay_of(w, i, keys->at[j]);
        const double size2 = part * part * s->q2[i] * s->dout2[i] / r->attention.head_dim;

        r->dv_size2[row] += size2 * keys->k2[j];
        r->dk_size2[row] += size2 * keys->v2[j];
    }
}

/* Whether any of the queries may see any of the keys. */
static bool
are_seen(const LhReferenceTask *queries, const LhFp64Keys *keys)
{
    const LhInterval seen = lh_reference_seen_by(queries);

    return seen.first <= keys->at[keys->count - 1] && seen.end > keys->at[0];
}

/* State of a task of keys. */
typedef struct {
    LhFp64Keys keys;
    const uint64_t *rows; /* of the keys, in all tensors */
    double *dk, *dv;      /* [LH_REFERENCE_TILE][stride] */
    double *p, *ds;       /* recomputed, for queries whose pairs are not kept */
    double *scratch;
} KeySums;

/* Adds the contribution of @task's queries to the sums. Their pairs are kept or recomputed. */
static void
take_queries(const LhReferenceTask *task, KeySums *sums)
{
    const LhFp64Keys *keys = &sums->keys;
    const LhReferenceInputs *in = task->in;
    double *scratch = sums->scratch, *p = sums->p, *ds = sums->ds;
    LhFp64Queries w = lh_fp64_queries(task, &scratch);
    const Sizes s = sizes_of(&w);

    if (task->pairs != NULL) {
        p = tile_at(task, task->pairs, keys->at[0]);
        ds = p + LH_REFERENCE_TILE * in->widest;
    } else {
        lh_fp64_gather_lanes(&w);
        lh_fp64_find_share(&w);
        lh_fp64_find_scores(&w, keys, p);
        if (in->decay == NULL)
            lh_fp64_find_weights(&w, keys, p, NULL);
        lh_fp64_find_gradients(&w, keys, p, ds, NULL);
    }
    for (size_t j = 0; j < keys->count; j++) {
        if (in->decay == NULL)
            size_key(&w, &s, p + j * LH_REFERENCE_TILE, ds + j * LH_REFERENCE_TILE, sums->rows[j]);
        else
            size_decayed_key(&w, &s, keys, j, sums->rows[j]);
    }
    lh_fp64_weigh_by_key(&w, sums->dv, p, w.dout, keys->count);
    lh_fp64_weigh_by_key(&w, sums->dk, ds, w.q, keys->count);
}

/* Copies rows of the task's keys from or to a tensor. */
static void
move_rows(const KeySums *sums, size_t stride, double *tensor, double *rows, bool out)
{
    for (size_t j = 0; j < sums->keys.count; j++) {
        double *of_tensor = tensor + sums->rows[j] * stride, *row = rows + j * stride;

        memcpy(out ? row : of_tensor, out ? of_tensor : row, stride * sizeof(double));
    }
}

/* Takes zeroed rows of scratch: products process whole blocks, even with fewer keys. */
static double *
take_rows(const LhReferenceTask *t, double **scratch)
{
    const size_t rows = (size_t)LH_REFERENCE_TILE * t->in->r->stride;
    double *numbers = lh_fp64_take(scratch, rows);

    memset(numbers, 0, rows * sizeof(double));
    return numbers;
}

static void
do_keys(const LhReferenceTask *t)
{
    const LhReferenceInputs *in = t->in;
    const LhReference *r = in->r;
    uint64_t rows[LH_REFERENCE_TILE];
    double *scratch = t->scratch, *k = take_rows(t, &scratch), *v = take_rows(t, &scratch);
    KeySums s = { .keys = { .k = k, .v = v, .count = t->count },
                  .rows = rows,
                  .dk = take_rows(t, &scratch),
                  .dv = take_rows(t, &scratch),
                  .p = lh_fp64_take(&scratch, LH_REFERENCE_TILE * LH_REFERENCE_TILE),
                  .ds = lh_fp64_take(&scratch, LH_REFERENCE_TILE * LH_REFERENCE_TILE),
                  .scratch = scratch };

    for (size_t j = 0; j < t->count; j++) {
        rows[j] = lh_reference_row(r, t->sequence, t->head, r->attention.groups, t->at[j]);
        s.keys.at[j] = t->at[j];
        s.keys.k2[j] = in->k2[rows[j]];
        s.keys.v2[j] = in->v2[rows[j]];
    }
    move_rows(&s, r->stride, r->k, k, true);
    move_rows(&s, r->stride, r->v, v, true);
    move_rows(&s, r->stride, r->dk, s.dk, true);
    move_rows(&s, r->stride, r->dv, s.dv, true);
    for (uint32_t i = 0; i < t->queries_count; i++) {
        if (are_seen(&t->queries[i], &s.keys))
            take_queries(&t->queries[i], &s);
    }
    move_rows(&s, r->stride, r->dk, s.dk, false);
    move_rows(&s, r->stride, r->dv, s.dv, false);
}

extern const LhReferenceLevel JOIN(level, LH_LEVEL);

const LhReferenceLevel JOIN(level, LH_LEVEL) = {
    .name = LEVEL_NAME(LH_LEVEL),
    .queries = do_queries,
    .keys = do_keys,
};
