/*
 * Tiles of the reference, in fp64. A pair of a query and a key that it sees has a logit, the weight
 * p = e^(logit - lse), dp = do v and ds = p (dp - delta). A tile of queries finds the logits of all
 * its pairs; relative to the largest, their weights, lse and o; and then, with delta = o do, p, ds
 * and dq. A tile of keys takes p and ds from there, or finds them again from the peak, lse and
 * delta, to the bit. The queries of a tile lie in the lanes of vectors, so that their sums are not
 * added up across a vector.
 */
#include "reference/reference_tiles.h"

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
#define LINE 8 /* numbers of a line of the cache */
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
    /* The columns of B that a block takes, row behind row: they stay in the cache. @packed: b is
     * not used, since the panels of all blocks are there already, one behind the other. */
    double *panel;
    bool packed;
    size_t c_stride, b_stride;
    size_t rows, columns, depth; /* rows are rounded up to ROWS; PAD divides columns */
    bool add;
    const double *next; /* what is needed behind the product, and comes into the cache meanwhile */
    size_t next_count;
} Product;

/* ROWS rows and @vectors vectors of C, from a panel. */
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

/* Vectors of a block where @columns are left: as many as registers allow, without a last block of
 * one where there can be two. */
INLINE unsigned
vectors_of(size_t columns)
{
    if (columns >= (VECTORS + 2) * LANES || columns == VECTORS * LANES)
        return VECTORS;
    return columns >= 2 * LANES ? 2 : 1;
}

/* As much of what is needed next as the block from @row on is a part of the product. */
INLINE void
fetch_next(const Product *p, size_t row, size_t column, unsigned vectors)
{
    const size_t width = vectors * LANES, all = p->rows * p->columns;
    const size_t done = column * p->rows + row * width;
    const size_t end =
        p->next_count * (done + ROWS * width < all ? done + ROWS * width : all) / all;

    for (size_t i = p->next_count * done / all; i < end; i += LINE)
        __builtin_prefetch(p->next + i, 0, 2);
}

/* All rows of @vectors vectors of C. */
INLINE void
column_of_blocks(Product p, size_t column, size_t a_row, size_t a_depth, unsigned vectors)
{
    if (p.packed) {
        p.panel += column * p.depth;
    } else {
        for (size_t k = 0; k < p.depth; k++) {
            UNROLL
            for (unsigned v = 0; v < vectors; v++)
                store(p.panel + (k * vectors + v) * LANES,
                      load(p.b + k * p.b_stride + column + v * LANES));
        }
    }
    for (size_t row = 0; row < p.rows; row += ROWS) {
        if (p.next != NULL)
            fetch_next(&p, row, column, vectors);
        block(&p, row, column, a_row, a_depth, vectors);
    }
}

INLINE void
product(const Product *p, size_t a_row, size_t a_depth)
{
    unsigned vectors;

    for (size_t column = 0; column < p->columns; column += vectors * LANES) {
        vectors = vectors_of(p->columns - column);
        if (vectors == VECTORS)
            column_of_blocks(*p, column, a_row, a_depth, VECTORS);
        else if (vectors == 2)
            column_of_blocks(*p, column, a_row, a_depth, 2);
        else
            column_of_blocks(*p, column, a_row, a_depth, 1);
    }
}

/* ---- queries in lanes, keys in rows ---- */

/* Queries of a task. Lanes without one see nothing. */
typedef struct {
    const LhReferenceTask *task;
    size_t stride, columns;
    double *panel;
    const double *q, *dout; /* of the head */
    const double *q2, *dout2;
    double *q_lanes, *dout_lanes; /* packed; of q times the scale of logits */
    LhInterval sees[TILE];
    double peak[TILE], lse[TILE], delta[TILE];
    double share[TILE]; /* e^(peak - lse) */
} Queries;

/* Up to TILE keys of the group. */
typedef struct {
    const double *k, *v;           /* [count][stride], with room behind for a block of rows */
    const double *next_k, *next_v; /* of the tile behind it; may be NULL */
    double k2[TILE], v2[TILE];
    uint64_t at[TILE];
    size_t count;
} Keys;

/* The next @count numbers of a task's scratch. */
static double *
take(double **scratch, size_t count)
{
    double *numbers = *scratch;

    *scratch += count;
    return numbers;
}

static size_t
columns_of(const LhReferenceTask *t)
{
    return (t->count + LH_REFERENCE_PAD - 1) / LH_REFERENCE_PAD * LH_REFERENCE_PAD;
}

static Queries
queries_of(const LhReferenceTask *t, double **scratch)
{
    const LhReferenceInputs *in = t->in;
    const LhReference *r = in->r;
    const LhAttention *a = &r->attention;
    const uint64_t first = lh_reference_row(r, t->sequence, t->head, a->heads, 0);
    Queries w = { .task = t,
                  .stride = r->stride,
                  .columns = columns_of(t),
                  .panel = take(scratch, (size_t)LH_REFERENCE_PANEL * TILE),
                  .q = r->q + first * r->stride,
                  .dout = r->dout + first * r->stride,
                  .q2 = in->q2 + first,
                  .dout2 = in->dout2 + first,
                  .q_lanes = take(scratch, TILE * r->stride),
                  .dout_lanes = take(scratch, TILE * r->stride) };

    for (size_t i = 0; i < t->count; i++) {
        w.sees[i] = in->sees[t->at[i]];
        w.peak[i] = r->peak[first + t->at[i]];
        w.lse[i] = r->lse[first + t->at[i]];
        w.delta[i] = r->delta[first + t->at[i]];
    }
    return w;
}

/* Rows of the task's queries into lanes, times @factor. */
static void
gather(const Queries *w, const double *tensor, double factor, double *lanes)
{
    const LhReferenceTask *t = w->task;
    size_t width;

    for (size_t first = 0; first < w->columns; first += width) {
        width = vectors_of(w->columns - first) * LANES;
        for (size_t i = 0; i < width; i++) {
            const double *row = first + i < t->count ? tensor + t->at[first + i] * w->stride : NULL;

            for (size_t c = 0; c < w->stride; c++)
                lanes[first * w->stride + c * width + i] = row != NULL ? factor * row[c] : 0;
        }
    }
}

static void
gather_lanes(const Queries *w)
{
    const LhReferenceInputs *in = w->task->in;

    gather(w, w->q, in->decay != NULL ? 1 : in->scale, w->q_lanes);
    gather(w, w->dout, 1, w->dout_lanes);
}

/* tile[key][query] = rows of the keys times lanes of the queries. @next: rows of keys that are
 * needed next; may be NULL. */
static void
scores(const Queries *w, double *tile, const double *rows, size_t count, double *lanes,
       const double *next)
{
    const Product p = { .c = tile,
                        .a = rows,
                        .panel = lanes,
                        .packed = true,
                        .c_stride = TILE,
                        .rows = count,
                        .columns = w->columns,
                        .depth = w->stride,
                        .next = next,
                        .next_count = TILE * w->stride };

    product(&p, w->stride, 1);
}

/* sum[query][..] += tile[key][query] times the rows of the keys. */
static void
weigh_by_query(const Queries *w, double *sum, const double *tile, const double *rows, size_t count,
               const double *next)
{
    const Product p = { .c = sum,
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
                        .next_count = TILE * w->stride };

    product(&p, 1, TILE);
}

/* sum[key][..] += tile[key][query] times the rows of the queries, which are consecutive. */
static void
weigh_by_key(const Queries *w, double *sum, const double *tile, const double *rows, size_t count)
{
    const Product p = { .c = sum,
                        .a = tile,
                        .b = rows + w->task->at[0] * w->stride,
                        .panel = w->panel,
                        .c_stride = w->stride,
                        .b_stride = w->stride,
                        .rows = count,
                        .columns = w->stride,
                        .depth = w->task->count,
                        .add = true };

    product(&p, TILE, 1);
}

/* Pairs that the mask hides get the logit -infinity. */
static void
hide(const Queries *w, const Keys *keys, double *tile)
{
    for (size_t i = 0; i < w->columns; i++) {
        const LhInterval sees = w->sees[i];

        if (sees.first <= keys->at[0] && sees.end > keys->at[keys->count - 1])
            continue;
        for (size_t j = 0; j < keys->count; j++) {
            if (keys->at[j] < sees.first || keys->at[j] >= sees.end)
                tile[j * TILE + i] = -INFINITY;
        }
    }
}

/* Linear attention: by how much the pair's weight, and the gradient of it, decay. */
static double
decay_of(const Queries *w, size_t i, uint64_t key)
{
    const LhReferenceTask *t = w->task;

    return i < t->count && t->at[i] >= key ? t->in->decay[t->at[i] - key] : 0;
}

static void
decay(const Queries *w, const Keys *keys, double *tile)
{
    for (size_t j = 0; j < keys->count; j++)
        for (size_t i = 0; i < w->columns; i++)
            tile[j * TILE + i] *= decay_of(w, i, keys->at[j]);
}

/* Logits; of linear attention, the weights that they would become. */
static void
find_scores(const Queries *w, const Keys *keys, double *tile)
{
    scores(w, tile, keys->k, keys->count, w->q_lanes, keys->next_k);
    if (w->task->in->decay != NULL)
        decay(w, keys, tile);
    else
        hide(w, keys, tile);
}

/* Sums over the keys of each query. */
typedef struct {
    double sum[TILE], pv2[TILE], pk2[TILE]; /* of p, p^2 |v|^2, p^2 |k|^2; p without its share */
    double xk2[TILE];                       /* of p^2 dp^2 |k|^2 */
    double *o, *dq, *pk; /* [TILE][stride]: of p v without its share, ds k, p k */
} Sums;

static void
find_share(Queries *w)
{
    for (size_t i = 0; i < w->columns; i += LANES)
        store(w->share + i, exponential(load(w->peak + i) - load(w->lse + i)));
}

/* Turns logits into weights relative to the peak's: p without its share. @s may be NULL. */
INLINE void
find_weights(const Queries *w, const Keys *keys, double *tile, Sums *s)
{
    for (size_t i = 0; i < w->columns; i += LANES) {
        const Vector peak = load(w->peak + i);
        Vector sum = splat(0), pv2 = splat(0), pk2 = splat(0);

        for (size_t j = 0; j < keys->count; j++) {
            double *at = tile + j * TILE + i;
            const Vector p = exponential(load(at) - peak), p2 = p * p;

            store(at, p);
            sum += p;
            pv2 += p2 * keys->v2[j];
            pk2 += p2 * keys->k2[j];
        }
        if (s != NULL) {
            store(s->sum + i, load(s->sum + i) + sum);
            store(s->pv2 + i, load(s->pv2 + i) + pv2);
            store(s->pk2 + i, load(s->pk2 + i) + pk2);
        }
    }
}

/* p, and ds from it; of linear attention, the gradients of weights. @s may be NULL. */
INLINE void
find_gradients(const Queries *w, const Keys *keys, double *p, double *ds, Sums *s)
{
    scores(w, ds, keys->v, keys->count, w->dout_lanes, keys->k);
    if (w->task->in->decay != NULL) {
        decay(w, keys, ds);
        return;
    }
    for (size_t i = 0; i < w->columns; i += LANES) {
        const Vector share = load(w->share + i), delta = load(w->delta + i);
        Vector xk2 = splat(0);

        for (size_t j = 0; j < keys->count; j++) {
            double *at = p + j * TILE + i, *ds_at = ds + j * TILE + i;
            const Vector weight = load(at) * share, dp = load(ds_at), x = weight * dp;

            store(at, weight);
            store(ds_at, weight * (dp - delta));
            xk2 += x * x * keys->k2[j];
        }
        if (s != NULL)
            store(s->xk2 + i, load(s->xk2 + i) + xk2);
    }
}

/* ---- a tile of queries ---- */

/* All keys that the queries may see, tile by tile: these begin at multiples, so that a row is the
 * same in whatever task it is. */
typedef struct {
    const double *k, *v, *k2, *v2; /* of the group */
    uint64_t at, end, length;
    size_t stride;
    Keys keys;
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

/* The next tile of keys; NULL if there is none. */
static const Keys *
next_keys(Walk *walk)
{
    Keys *keys = &walk->keys;
    const uint64_t at = walk->at;

    if (at >= walk->end)
        return NULL;
    keys->count = walk->length - at < TILE ? walk->length - at : TILE;
    keys->k = walk->k + at * walk->stride;
    keys->v = walk->v + at * walk->stride;
    for (size_t j = 0; j < keys->count; j++) {
        keys->at[j] = at + j;
        keys->k2[j] = walk->k2[at + j];
        keys->v2[j] = walk->v2[at + j];
    }
    walk->at += TILE;
    keys->next_k = walk->at < walk->end ? walk->k + walk->at * walk->stride : NULL;
    keys->next_v = walk->at < walk->end ? walk->v + walk->at * walk->stride : NULL;
    return keys;
}

/* The largest logit so far, of the queries of a vector. */
INLINE void
climb(Queries *w, size_t i, const double *tile, size_t count)
{
    Vector peak = load(w->peak + i);

    for (size_t j = 0; j < count; j++) {
        const Vector logit = load(tile + j * TILE + i);

        peak = choose(logit > peak, logit, peak);
    }
    store(w->peak + i, peak);
}

/* Linear attention: of weights as large as the norms of q and k make them, and likewise of do and
 * v. */
static void
size_decayed(const Queries *w, Sums *s, const Keys *keys)
{
    const LhReferenceTask *t = w->task;

    for (size_t j = 0; j < keys->count; j++) {
        const double size2 = keys->k2[j] * keys->v2[j] / t->in->r->attention.head_dim;

        for (size_t i = 0; i < t->count; i++) {
            const double part = decay_of(w, i, keys->at[j]);

            s->pv2[i] += part * part * size2 * w->q2[t->at[i]];
            s->xk2[i] += part * part * size2 * w->dout2[t->at[i]];
        }
    }
}

/* From the sums over all keys, of one query, o and what comes of it. */
static void
finish_forward(Queries *w, Sums *s, size_t i)
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
finish_backward(const Queries *w, const Sums *s, size_t i)
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

/* Where tiles of a task's queries are, with keys of which the first is at @key. */
static double *
tile_at(const LhReferenceTask *t, double *tiles, uint64_t key)
{
    return tiles + (key - lh_reference_seen_by(t).first) * TILE;
}

/* Where p and ds of a task's queries are: rows of tiles, or one that is found again. */
typedef struct {
    double *p, *ds;
    bool p_row, ds_row;
} Tiles;

static double *
p_of(const Queries *w, const Tiles *tiles, const Keys *keys)
{
    return tiles->p_row ? tile_at(w->task, tiles->p, keys->at[0]) : tiles->p;
}

static double *
ds_of(const Queries *w, const Tiles *tiles, const Keys *keys)
{
    return tiles->ds_row ? tile_at(w->task, tiles->ds, keys->at[0]) : tiles->ds;
}

/* And the scores, if they stay. Linear attention has no peaks. */
static void
find_peaks(Queries *w, Walk walk, const Tiles *tiles)
{
    const Keys *keys;

    for (size_t i = 0; i < TILE; i++)
        w->peak[i] = -INFINITY;
    while (w->task->in->decay == NULL && (keys = next_keys(&walk)) != NULL) {
        double *p = p_of(w, tiles, keys);

        find_scores(w, keys, p);
        for (size_t i = 0; i < w->columns; i += LANES)
            climb(w, i, p, keys->count);
    }
    for (size_t i = 0; i < w->columns; i++) {
        if (w->peak[i] == -INFINITY) /* a lane that sees nothing */
            w->peak[i] = 0;
    }
}

static void
forward(Queries *w, Sums *s, Walk walk, const Tiles *tiles)
{
    const bool soft = w->task->in->decay == NULL;
    const Keys *keys;

    find_peaks(w, walk, tiles);
    while ((keys = next_keys(&walk)) != NULL) {
        double *p = p_of(w, tiles, keys);

        if (!tiles->p_row || !soft)
            find_scores(w, keys, p);
        if (soft)
            find_weights(w, keys, p, s);
        else
            size_decayed(w, s, keys);
        weigh_by_query(w, s->o, p, keys->v, keys->count, keys->next_v);
    }
    for (size_t i = 0; i < w->task->count; i++)
        finish_forward(w, s, i);
    if (soft)
        find_share(w);
}

static void
backward(const Queries *w, Sums *s, Walk walk, const Tiles *tiles)
{
    const bool soft = w->task->in->decay == NULL;
    const Keys *keys;

    while ((keys = next_keys(&walk)) != NULL) {
        double *p = p_of(w, tiles, keys), *ds = ds_of(w, tiles, keys);

        if (!tiles->p_row && soft) {
            find_scores(w, keys, p);
            find_weights(w, keys, p, NULL);
        }
        find_gradients(w, keys, p, ds, s);
        weigh_by_query(w, s->dq, ds, keys->k, keys->count, keys->next_v);
        if (soft)
            weigh_by_query(w, s->pk, p, keys->k, keys->count, NULL);
    }
    for (size_t i = 0; i < w->task->count; i++)
        finish_backward(w, s, i);
}

static void
do_queries(const LhReferenceTask *t)
{
    const LhReferenceInputs *in = t->in;
    const LhAttention *a = &in->r->attention;
    const size_t rows = (size_t)TILE * in->r->stride;
    const Walk walk = walk_of(t, t->head / (a->heads / a->groups));
    double *scratch = t->scratch;
    Queries w = queries_of(t, &scratch);
    Sums s = { .o = take(&scratch, rows), .dq = take(&scratch, rows), .pk = take(&scratch, rows) };
    Tiles tiles = { .p_row = t->pairs != NULL || in->row, .ds_row = t->pairs != NULL };

    if (t->pairs != NULL) {
        tiles.p = t->pairs;
        tiles.ds = t->pairs + TILE * in->widest;
    } else {
        tiles.ds = take(&scratch, TILE * TILE);
        tiles.p = take(&scratch, TILE * TILE); /* the first of a row */
    }
    memset(s.o, 0, rows * sizeof(double));
    memset(s.dq, 0, rows * sizeof(double));
    memset(s.pk, 0, rows * sizeof(double));
    gather_lanes(&w);
    forward(&w, &s, walk, &tiles);
    if (!in->forward)
        backward(&w, &s, walk, &tiles);
}

/* ---- a tile of keys ---- */

/* Of queries, what sizes of the keys' sums are made of. */
typedef struct {
    double q2[TILE], dout2[TILE], delta2[TILE];
} Sizes;

static Sizes
sizes_of(const Queries *w)
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
sum_of(Vector x)
{
    double sum = 0;

    for (size_t i = 0; i < LANES; i++)
        sum += x[i];
    return sum;
}

/* e^2 = p^2 (dp^2 + delta^2) from ds = p (dp - delta). */
INLINE void
size_key(const Queries *w, const Sizes *s, const double *p, const double *ds, uint64_t row)
{
    const LhReference *r = w->task->in->r;
    Vector dk2 = splat(0), dv2 = splat(0), delta2 = splat(0);

    for (size_t i = 0; i < w->columns; i += LANES) {
        const Vector weight = load(p + i), delta = load(w->delta + i);
        const Vector x = load(ds + i) + weight * delta, weight2 = weight * weight;

        dv2 += weight2 * load(s->dout2 + i);
        dk2 += (x * x + weight2 * (delta * delta)) * load(s->q2 + i);
        delta2 += weight2 * load(s->delta2 + i);
    }
    r->dk_size2[row] += sum_of(dk2);
    r->dv_size2[row] += sum_of(dv2);
    r->dk_delta2[row] += sum_of(delta2);
}

static void
size_decayed_key(const Queries *w, const Sizes *s, const Keys *keys, size_t j, uint64_t row)
{
    const LhReference *r = w->task->in->r;

    for (size_t i = 0; i < w->task->count; i++) {
        const double part = decay_of(w, i, keys->at[j]);
        const double size2 = part * part * s->q2[i] * s->dout2[i] / r->attention.head_dim;

        r->dv_size2[row] += size2 * keys->k2[j];
        r->dk_size2[row] += size2 * keys->v2[j];
    }
}

/* Whether some of the queries may see some of the keys. */
static bool
are_seen(const LhReferenceTask *queries, const Keys *keys)
{
    const LhInterval seen = lh_reference_seen_by(queries);

    return seen.first <= keys->at[keys->count - 1] && seen.end > keys->at[0];
}

/* What a task of keys works on. */
typedef struct {
    Keys keys;
    const uint64_t *rows; /* of the keys, in all tensors */
    double *dk, *dv;      /* [TILE][stride] */
    double *p, *ds;       /* of queries whose pairs are not kept */
    double *scratch;
} KeySums;

/* What the queries of @task give to the sums. Their pairs are there, or found again. */
static void
take_queries(const LhReferenceTask *task, KeySums *sums)
{
    const Keys *keys = &sums->keys;
    const LhReferenceInputs *in = task->in;
    double *scratch = sums->scratch, *p = sums->p, *ds = sums->ds;
    Queries w = queries_of(task, &scratch);
    const Sizes s = sizes_of(&w);

    if (task->pairs != NULL) {
        p = tile_at(task, task->pairs, keys->at[0]);
        ds = p + TILE * in->widest;
    } else {
        gather_lanes(&w);
        find_share(&w);
        find_scores(&w, keys, p);
        if (in->decay == NULL)
            find_weights(&w, keys, p, NULL);
        find_gradients(&w, keys, p, ds, NULL);
    }
    for (size_t j = 0; j < keys->count; j++) {
        if (in->decay == NULL)
            size_key(&w, &s, p + j * TILE, ds + j * TILE, sums->rows[j]);
        else
            size_decayed_key(&w, &s, keys, j, sums->rows[j]);
    }
    weigh_by_key(&w, sums->dv, p, w.dout, keys->count);
    weigh_by_key(&w, sums->dk, ds, w.q, keys->count);
}

/* Rows of the task's keys, out of or into a tensor. */
static void
move_rows(const KeySums *sums, size_t stride, double *tensor, double *rows, bool out)
{
    for (size_t j = 0; j < sums->keys.count; j++) {
        double *of_tensor = tensor + sums->rows[j] * stride, *row = rows + j * stride;

        memcpy(out ? row : of_tensor, out ? of_tensor : row, stride * sizeof(double));
    }
}

/* Rows of the scratch, which are 0: products take whole blocks, also where there are fewer keys. */
static double *
take_rows(const LhReferenceTask *t, double **scratch)
{
    const size_t rows = (size_t)TILE * t->in->r->stride;
    double *numbers = take(scratch, rows);

    memset(numbers, 0, rows * sizeof(double));
    return numbers;
}

static void
do_keys(const LhReferenceTask *t)
{
    const LhReferenceInputs *in = t->in;
    const LhReference *r = in->r;
    uint64_t rows[TILE];
    double *scratch = t->scratch, *k = take_rows(t, &scratch), *v = take_rows(t, &scratch);
    KeySums s = { .keys = { .k = k, .v = v, .count = t->count },
                  .rows = rows,
                  .dk = take_rows(t, &scratch),
                  .dv = take_rows(t, &scratch),
                  .p = take(&scratch, TILE * TILE),
                  .ds = take(&scratch, TILE * TILE),
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
