/*
 * Tiles of the reference, in fp64. A tile of queries takes its keys in one pass: o, the sum of
 * p dp k and that of p k grow together and are rescaled when a larger logit comes; then dq is
 * scale (sum p dp k - delta sum p k). A tile of keys knows lse and delta of every query, so that p
 * and ds are final. Rows of a tile lie in the lanes of vectors, so that nothing is added up across
 * a vector.
 */
#include "runtime/reference_tiles.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define JOIN_(a, b) lh_reference_##a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define LEVEL_NAME_(level) #level
#define LEVEL_NAME(level) LEVEL_NAME_(level)

#if defined(__AVX512F__)
#define LANES 8
#define ROWS 8
#define VECTORS 2
#elif defined(__AVX2__)
#define LANES 4
#define ROWS 4
#define VECTORS 3
#else
#define LANES 2
#define ROWS 4
#define VECTORS 2
#endif
#define TILE LH_REFERENCE_TILE
_Static_assert(TILE % ROWS == 0 && LH_REFERENCE_PAD % LANES == 0, "tiles are whole blocks");
_Static_assert(VECTORS *LANES <= LH_REFERENCE_PANEL, "a panel has room for the columns of a block");

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef double Vector __attribute__((vector_size(8 * LANES)));
typedef double VectorAny __attribute__((vector_size(8 * LANES), may_alias, aligned(8)));
typedef int64_t Bits __attribute__((vector_size(8 * LANES)));

INLINE Vector
load(const double *p)
{
    return *(const VectorAny *)p;
}

INLINE void
store(double *p, Vector x)
{
    *(VectorAny *)p = x;
}

INLINE Vector
splat(double x)
{
    return x - (Vector){ 0 };
}

INLINE Vector
choose(Bits mask, Vector a, Vector b)
{
    return (Vector)((mask & (Bits)a) | (~mask & (Bits)b));
}

/*
 * e^x to a few units in the last place for x <= 0; 0 below -708. x = n ln 2 + r; adding 1.5 2^52
 * rounds n to an integer that stands in the low bits; e^r is its series up to r^13 / 13!.
 */
INLINE Vector
exponential(Vector x)
{
    static const double series[] = { 1.0 / 479001600,
                                     1.0 / 39916800,
                                     1.0 / 3628800,
                                     1.0 / 362880,
                                     1.0 / 40320,
                                     1.0 / 5040,
                                     1.0 / 720,
                                     1.0 / 120,
                                     1.0 / 24,
                                     1.0 / 6,
                                     1.0 / 2,
                                     1,
                                     1 };
    const Bits small = x < -708.0;
    const Vector clamped = choose(small, splat(-708), x);
    const Vector shifted = clamped * 0x1.71547652b82fep0 + 0x1.8p52;
    const Vector n = shifted - 0x1.8p52;
    const Vector r = (clamped - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
    Vector p = splat(1.0 / 6227020800);

    UNROLL
    for (unsigned i = 0; i < sizeof(series) / sizeof(series[0]); i++)
        p = p * r + series[i];
    p = (Vector)((Bits)p + ((Bits)shifted << 52));
    return choose(small, splat(0), p);
}

/* ---- products ---- */

/* C[rows][columns] (+)= A B. The element (i, k) of A is a[i * a_row + k * a_depth]. */
typedef struct {
    double *c;
    const double *a, *b;
    double *panel; /* the columns of B that a block takes, row behind row: they stay in the cache */
    size_t c_stride, b_stride;
    size_t rows, columns, depth; /* rows are rounded up to ROWS; PAD divides columns */
    bool add;
} Product;

/* ROWS rows and @vectors vectors of C. */
INLINE void
block(const Product *p, size_t row, size_t column, size_t a_row, size_t a_depth, unsigned vectors)
{
    const double *a = p->a + row * a_row, *b = p->panel;
    double *c = p->c + row * p->c_stride + column;
    const size_t depth = p->depth;
    Vector sum[ROWS][VECTORS];

    UNROLL
    for (unsigned i = 0; i < ROWS; i++) {
        UNROLL
        for (unsigned v = 0; v < vectors; v++)
            sum[i][v] = (Vector){ 0 };
    }
    for (size_t k = 0; k < depth; k++) {
        Vector x[VECTORS];

        UNROLL
        for (unsigned v = 0; v < vectors; v++)
            x[v] = load(b + (k * vectors + v) * LANES);
        UNROLL
        for (unsigned i = 0; i < ROWS; i++) {
            const Vector weight = splat(a[i * a_row + k * a_depth]);

            UNROLL
            for (unsigned v = 0; v < vectors; v++)
                sum[i][v] += weight * x[v];
        }
    }
    UNROLL
    for (unsigned i = 0; i < ROWS; i++) {
        UNROLL
        for (unsigned v = 0; v < vectors; v++) {
            double *at = c + i * p->c_stride + v * LANES;

            store(at, p->add ? sum[i][v] + load(at) : sum[i][v]);
        }
    }
}

/* All rows of @vectors vectors of C. */
INLINE void
column_of_blocks(const Product *p, size_t column, size_t a_row, size_t a_depth, unsigned vectors)
{
    for (size_t k = 0; k < p->depth; k++) {
        UNROLL
        for (unsigned v = 0; v < vectors; v++)
            store(p->panel + (k * vectors + v) * LANES,
                  load(p->b + k * p->b_stride + column + v * LANES));
    }
    for (size_t row = 0; row < p->rows; row += ROWS)
        block(p, row, column, a_row, a_depth, vectors);
}

INLINE void
product(const Product *p, size_t a_row, size_t a_depth)
{
    size_t column = 0;

    /* As wide as registers allow, without a last block of one vector where there can be two. */
    for (; p->columns - column >= (VECTORS + 2) * LANES || p->columns - column == VECTORS * LANES;
         column += VECTORS * LANES)
        column_of_blocks(p, column, a_row, a_depth, VECTORS);
    for (; p->columns - column >= 2 * LANES; column += 2 * LANES)
        column_of_blocks(p, column, a_row, a_depth, 2);
    if (column < p->columns)
        column_of_blocks(p, column, a_row, a_depth, 1);
}

static size_t
columns_of(const LhReferenceTask *t)
{
    return (t->count + LH_REFERENCE_PAD - 1) / LH_REFERENCE_PAD * LH_REFERENCE_PAD;
}

/* scores[row][lane] = rows of a tensor times those in @lanes, [stride][TILE]. */
static void
scores(const LhReferenceTask *t, double *c, const double *rows, size_t count, const double *lanes)
{
    const size_t stride = t->in->r->stride;
    const Product p = { .c = c,
                        .a = rows,
                        .b = lanes,
                        .panel = t->scratch,
                        .c_stride = TILE,
                        .b_stride = TILE,
                        .rows = count,
                        .columns = columns_of(t),
                        .depth = stride };

    product(&p, stride, 1);
}

/* sum[lane][..] += weights[row][lane] times the rows of a tensor. */
static void
weigh(const LhReferenceTask *t, double *sum, const double *weights, const double *rows,
      size_t count)
{
    const size_t stride = t->in->r->stride;
    const Product p = { .c = sum,
                        .a = weights,
                        .b = rows,
                        .panel = t->scratch,
                        .c_stride = stride,
                        .b_stride = stride,
                        .rows = columns_of(t),
                        .columns = stride,
                        .depth = count,
                        .add = true };

    product(&p, 1, TILE);
}

/* Rows at the task's positions into lanes, times @factor. */
static void
gather(const LhReferenceTask *t, const double *tensor, double factor, double *lanes)
{
    const size_t stride = t->in->r->stride;

    for (size_t i = 0; i < TILE; i++)
        for (size_t c = 0; c < stride; c++)
            lanes[c * TILE + i] = i < t->count ? factor * tensor[t->at[i] * stride + c] : 0;
}

static double
norm2(const double *row, size_t stride)
{
    double sum = 0;

    for (size_t c = 0; c < stride; c++)
        sum += row[c] * row[c];
    return sum;
}

/* ---- a tile of queries ---- */

/* Of each query, relative to its largest logit so far. */
typedef struct {
    double max[TILE], factor[TILE];
    double sum[TILE], delta[TILE];          /* of p, of p dp */
    double pv2[TILE], xk2[TILE], pk2[TILE]; /* of p^2 |v|^2, p^2 dp^2 |k|^2, p^2 |k|^2 */
} Lanes;

typedef struct {
    const LhReferenceTask *task;
    const double *q, *dout, *k, *v; /* of the head and its group */
    const double *q2, *dout2, *k2, *v2;
    size_t stride, columns;
    double *q_lanes, *dout_lanes;
    double *p, *x;       /* [key][query]: p, and p dp */
    double *o, *xk, *pk; /* sums by query */
    Lanes lanes;
} Queries;

/* Pairs that the mask hides get @hidden; queries without a row, too. */
static void
hide_keys(const Queries *w, double *tile, uint64_t first, uint64_t count, double hidden)
{
    const LhReferenceTask *t = w->task;

    for (size_t i = 0; i < w->columns; i++) {
        const LhInterval sees = i < t->count ? t->in->sees[t->at[i]] : (LhInterval){ 0, 0 };

        if (sees.first <= first && sees.end >= first + count)
            continue;
        for (uint64_t j = 0; j < count; j++) {
            if (first + j < sees.first || first + j >= sees.end)
                tile[j * TILE + i] = hidden;
        }
    }
}

/* Turns logits and dp into p and p dp, for the queries of a vector from lane @i on. */
INLINE void
soften(Queries *w, size_t i, uint64_t first, uint64_t count)
{
    Lanes *l = &w->lanes;
    const Vector before = load(l->max + i);
    Vector max = before, shift, factor, sum, delta, pv2, xk2, pk2;

    for (uint64_t j = 0; j < count; j++) {
        const Vector s = load(w->p + j * TILE + i);

        max = choose(s > max, s, max);
    }
    shift = choose(max == -INFINITY, splat(0), max);
    factor = exponential(choose(before == -INFINITY, splat(-INFINITY), before - shift));
    sum = load(l->sum + i) * factor;
    delta = load(l->delta + i) * factor;
    pv2 = load(l->pv2 + i) * factor * factor;
    xk2 = load(l->xk2 + i) * factor * factor;
    pk2 = load(l->pk2 + i) * factor * factor;
    for (uint64_t j = 0; j < count; j++) {
        const Vector p = exponential(load(w->p + j * TILE + i) - shift);
        const Vector x = p * load(w->x + j * TILE + i);

        store(w->p + j * TILE + i, p);
        store(w->x + j * TILE + i, x);
        sum += p;
        delta += x;
        pv2 += p * p * w->v2[first + j];
        xk2 += x * x * w->k2[first + j];
        pk2 += p * p * w->k2[first + j];
    }
    store(l->max + i, max);
    store(l->factor + i, factor);
    store(l->sum + i, sum);
    store(l->delta + i, delta);
    store(l->pv2 + i, pv2);
    store(l->xk2 + i, xk2);
    store(l->pk2 + i, pk2);
}

static void
rescale(Queries *w)
{
    for (size_t i = 0; i < w->task->count; i++) {
        const double factor = w->lanes.factor[i];

        for (size_t c = i * w->stride; factor != 1 && c < (i + 1) * w->stride; c++) {
            w->o[c] *= factor;
            w->xk[c] *= factor;
            w->pk[c] *= factor;
        }
    }
}

/* Linear attention: weights, and gradients of them, decay with the distance. */
static void
decay_keys(Queries *w, uint64_t first, uint64_t count)
{
    const LhReferenceTask *t = w->task;
    Lanes *l = &w->lanes;

    for (uint64_t j = 0; j < count; j++) {
        const double size2 = w->k2[first + j] * w->v2[first + j] / t->in->r->attention.head_dim;

        for (size_t i = 0; i < t->count; i++) {
            const uint64_t at = t->at[i];
            const double decay = at >= first + j ? t->in->decay[at - first - j] : 0;

            w->p[j * TILE + i] *= decay;
            w->x[j * TILE + i] *= decay;
            l->pv2[i] += decay * decay * size2 * w->q2[at];
            l->xk2[i] += decay * decay * size2 * w->dout2[at];
        }
    }
}

static void
take_keys(Queries *w, uint64_t first, uint64_t count)
{
    const double *k = w->k + first * w->stride, *v = w->v + first * w->stride;
    const bool forward = w->task->in->forward; /* then p dp stays 0 */

    scores(w->task, w->p, k, count, w->q_lanes);
    if (!forward)
        scores(w->task, w->x, v, count, w->dout_lanes);
    if (w->task->in->decay != NULL) {
        decay_keys(w, first, count);
    } else {
        hide_keys(w, w->p, first, count, -INFINITY);
        for (size_t i = 0; i < w->columns; i += LANES)
            soften(w, i, first, count);
        rescale(w);
        if (!forward)
            weigh(w->task, w->pk, w->p, k, count);
    }
    weigh(w->task, w->o, w->p, v, count);
    if (!forward)
        weigh(w->task, w->xk, w->x, k, count);
}

/* Of one query: from sums to results. */
static void
finish_query(const Queries *w, size_t i)
{
    const LhReferenceTask *t = w->task;
    const LhReferenceInputs *in = t->in;
    LhReference *r = in->r;
    const Lanes *l = &w->lanes;
    const bool soft = in->decay == NULL;
    const double sum = soft ? l->sum[i] : 1, scale = soft ? in->scale : 1;
    const double delta = soft ? l->delta[i] / sum : 0;
    const uint64_t row = lh_reference_row(r, t->sequence, t->head, r->attention.heads, t->at[i]);
    const double *dout = w->dout + t->at[i] * w->stride;
    double *o = r->o + row * w->stride, *dq = r->dq + row * w->stride;
    double pk2 = 0, spread = 0;

    for (size_t c = 0; c < w->stride; c++) {
        const size_t at = i * w->stride + c;

        o[c] = w->o[at] / sum;
        dq[c] = scale * (w->xk[at] - delta * w->pk[at]) / sum;
        pk2 += w->pk[at] * w->pk[at] / (sum * sum);
        spread += dout[c] * dout[c] * o[c] * o[c];
    }
    r->o_size2[row] = fmax(norm2(o, w->stride), l->pv2[i] / (sum * sum));
    r->dq_size2[row] = fmax(norm2(dq, w->stride),
                            scale * scale * (l->xk2[i] + delta * delta * l->pk2[i]) / (sum * sum));
    if (!soft)
        return;
    r->lse[row] = l->max[i] + log(sum);
    r->delta[row] = delta;
    r->delta_size2[row] =
        fmax(spread, in->dout2[row] * l->pv2[i] / (sum * sum) / r->attention.head_dim);
    r->dq_delta2[row] = scale * scale * r->delta_size2[row] * pk2;
}

static void
queries(const LhReferenceTask *t)
{
    const LhReferenceInputs *in = t->in;
    LhReference *r = in->r;
    const LhAttention *a = &r->attention;
    const uint32_t group = t->head / (a->heads / a->groups);
    const uint64_t q_first = lh_reference_row(r, t->sequence, t->head, a->heads, 0);
    const uint64_t k_first = lh_reference_row(r, t->sequence, group, a->groups, 0);
    const uint64_t first = in->sees[t->at[0]].first, end = in->sees[t->at[t->count - 1]].end;
    const uint64_t n = a->seq_length;
    const size_t stride = r->stride, rows = (size_t)TILE * stride;
    Queries w = { .task = t, .stride = stride, .columns = columns_of(t) };

    w.q = r->q + q_first * stride;
    w.dout = r->dout + q_first * stride;
    w.k = r->k + k_first * stride;
    w.v = r->v + k_first * stride;
    w.q2 = in->q2 + q_first;
    w.dout2 = in->dout2 + q_first;
    w.k2 = in->k2 + k_first;
    w.v2 = in->v2 + k_first;
    w.p = t->scratch + lh_reference_panel(r);
    w.x = w.p + (size_t)TILE * TILE;
    w.q_lanes = w.x + (size_t)TILE * TILE;
    w.dout_lanes = w.q_lanes + rows;
    w.o = w.dout_lanes + rows;
    w.xk = w.o + rows;
    w.pk = w.xk + rows;
    memset(w.x, 0, (size_t)TILE * TILE * sizeof(double));
    memset(w.o, 0, 3 * rows * sizeof(double));
    for (size_t i = 0; i < TILE; i++)
        w.lanes.max[i] = -INFINITY;
    gather(t, w.q, in->decay != NULL ? 1 : in->scale, w.q_lanes);
    gather(t, w.dout, 1, w.dout_lanes);
    /* Tiles of keys begin at multiples, so that a row is the same in whatever tile it is. */
    for (uint64_t at = first / TILE * TILE; at < end; at += TILE)
        take_keys(&w, at, n - at < TILE ? n - at : TILE);
    for (size_t i = 0; i < t->count; i++)
        finish_query(&w, i);
}

/* ---- a tile of keys ---- */

typedef struct {
    const LhReferenceTask *task;
    size_t stride, columns;
    double *k_lanes, *v_lanes;
    double *p, *ds;  /* [query][key] */
    double *dk, *dv; /* sums by key */
    const double *k2, *v2;
    double dk2[TILE], dv2[TILE], delta2[TILE];
} Keys;

/* The keys of lanes that the query at @position does not see get the p and ds 0. */
static void
hide_lanes(const Keys *w, size_t i, uint64_t position)
{
    const LhReferenceTask *t = w->task;
    const LhInterval sees = t->in->sees[position];

    if (sees.first <= t->at[0] && sees.end > t->at[t->count - 1])
        return;
    for (size_t j = 0; j < t->count; j++) {
        if (t->at[j] < sees.first || t->at[j] >= sees.end)
            w->p[i * TILE + j] = w->ds[i * TILE + j] = 0;
    }
}

/* Turns logits and dp of one query into p and ds. */
INLINE void
harden(Keys *w, size_t i, uint64_t row)
{
    const LhReference *r = w->task->in->r;
    const Vector lse = splat(r->lse[row]), delta = splat(r->delta[row]);

    for (size_t j = 0; j < w->columns; j += LANES) {
        const Vector p = exponential(load(w->p + i * TILE + j) - lse);

        store(w->p + i * TILE + j, p);
        store(w->ds + i * TILE + j, p * (load(w->ds + i * TILE + j) - delta));
    }
}

static void
decay_query(Keys *w, size_t i, uint64_t row, uint64_t position)
{
    const LhReferenceTask *t = w->task;
    const LhReferenceInputs *in = t->in;
    const double size2 = in->q2[row] * in->dout2[row] / in->r->attention.head_dim;

    for (size_t j = 0; j < t->count; j++) {
        const double decay = position >= t->at[j] ? in->decay[position - t->at[j]] : 0;

        w->p[i * TILE + j] *= decay;
        w->ds[i * TILE + j] *= decay;
        w->dv2[j] += decay * decay * size2 * w->k2[t->at[j]];
        w->dk2[j] += decay * decay * size2 * w->v2[t->at[j]];
    }
}

/* What the terms of one query have in common: e^2 = p^2 (dp^2 + delta^2) from ds = p (dp - delta).
 */
INLINE void
measure(Keys *w, size_t i, uint64_t row)
{
    const LhReferenceInputs *in = w->task->in;
    const double delta = in->r->delta[row], q2 = in->q2[row], dout2 = in->dout2[row];
    const double delta2 = in->r->delta_size2[row] * q2;

    for (size_t j = 0; j < w->columns; j += LANES) {
        const Vector p = load(w->p + i * TILE + j), ds = load(w->ds + i * TILE + j);
        const Vector x = ds + p * delta;

        store(w->dv2 + j, load(w->dv2 + j) + p * p * dout2);
        store(w->dk2 + j, load(w->dk2 + j) + (x * x + p * p * (delta * delta)) * q2);
        store(w->delta2 + j, load(w->delta2 + j) + p * p * delta2);
    }
}

static void
take_queries(Keys *w, uint32_t head, uint64_t first, uint64_t count)
{
    const LhReferenceInputs *in = w->task->in;
    const LhReference *r = in->r;
    const uint64_t row = lh_reference_row(r, w->task->sequence, head, r->attention.heads, first);
    const double *q = r->q + row * w->stride, *dout = r->dout + row * w->stride;

    scores(w->task, w->p, q, count, w->k_lanes);
    scores(w->task, w->ds, dout, count, w->v_lanes);
    for (uint64_t i = 0; i < count; i++) {
        if (in->decay != NULL) {
            decay_query(w, i, row + i, first + i);
            continue;
        }
        harden(w, i, row + i);
        hide_lanes(w, i, first + i);
        measure(w, i, row + i);
    }
    weigh(w->task, w->dv, w->p, dout, count);
    weigh(w->task, w->dk, w->ds, q, count);
}

/* Queries of which some may see some of the tile's keys. */
static bool
are_seen(const LhReferenceTask *t, uint64_t first, uint64_t count)
{
    const LhInterval *sees = t->in->sees;

    return sees[first].first <= t->at[t->count - 1] && sees[first + count - 1].end > t->at[0];
}

static void
finish_key(const Keys *w, size_t j)
{
    const LhReferenceTask *t = w->task;
    LhReference *r = t->in->r;
    const double scale = t->in->decay != NULL ? 1 : t->in->scale;
    const uint64_t row = lh_reference_row(r, t->sequence, t->head, r->attention.groups, t->at[j]);
    double *dk = r->dk + row * w->stride, *dv = r->dv + row * w->stride;

    for (size_t c = 0; c < w->stride; c++) {
        dk[c] = scale * w->dk[j * w->stride + c];
        dv[c] = w->dv[j * w->stride + c];
    }
    r->dk_size2[row] = fmax(norm2(dk, w->stride), scale * scale * w->dk2[j]);
    r->dv_size2[row] = fmax(norm2(dv, w->stride), w->dv2[j]);
    r->dk_delta2[row] = scale * scale * w->delta2[j];
}

static void
keys(const LhReferenceTask *t)
{
    const LhReferenceInputs *in = t->in;
    const LhReference *r = in->r;
    const LhAttention *a = &r->attention;
    const uint32_t share = a->heads / a->groups;
    const uint64_t k_first = lh_reference_row(r, t->sequence, t->head, a->groups, 0);
    const size_t stride = r->stride, rows = (size_t)TILE * stride;
    Keys w = { .task = t, .stride = stride, .columns = columns_of(t) };

    w.k2 = in->k2 + k_first;
    w.v2 = in->v2 + k_first;
    w.p = t->scratch + lh_reference_panel(r);
    w.ds = w.p + (size_t)TILE * TILE;
    w.k_lanes = w.ds + (size_t)TILE * TILE;
    w.v_lanes = w.k_lanes + rows;
    w.dk = w.v_lanes + rows;
    w.dv = w.dk + rows;
    memset(w.dk, 0, 2 * rows * sizeof(double));
    gather(t, r->k + k_first * stride, in->decay != NULL ? 1 : in->scale, w.k_lanes);
    gather(t, r->v + k_first * stride, 1, w.v_lanes);
    for (uint32_t head = t->head * share; head < (t->head + 1) * share; head++) {
        for (uint64_t at = 0; at < a->seq_length; at += TILE) {
            const uint64_t count = a->seq_length - at < TILE ? a->seq_length - at : TILE;

            if (are_seen(t, at, count))
                take_queries(&w, head, at, count);
        }
    }
    for (size_t j = 0; j < t->count; j++)
        finish_key(&w, j);
}

extern const LhReferenceLevel JOIN(level, LH_LEVEL);

const LhReferenceLevel JOIN(level, LH_LEVEL) = {
    .name = LEVEL_NAME(LH_LEVEL),
    .queries = queries,
    .keys = keys,
};
