/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention backward in tiles of LH_TILE keys by LH_TILE queries: five products in one pass. Keys
 * are the outer loop, so dk and dv of a tile stay in cache and dq is summed in scratch. All tensors
 * of a head are converted and packed once, in the two forms that the products need. The order of
 * all sums is fixed. Linear attention uses distance weights instead of the exponential.
 */
#include "kernels/cpu/simd/simd.h"

#include <math.h>

typedef struct {
    const LhBackward *b;
    LhTileMask mask;
    uint64_t sequence;
    uint32_t head, group;
    size_t dim, columns, lanes_tile, rows_tile; /* floats of a packed tile */
    /* Packed by tile: with rows in lanes, and in panels of columns. */
    float *k_lanes, *v_lanes, *k_rows;
    float *q_lanes, *do_lanes, *q_rows, *do_rows;
    float *dq, *dk, *dv;       /* [row][columns], fp32 sums */
    float *lse, *delta;        /* of the queries of a head */
    float *weights, *gradient; /* P^T and dS^T of a pair of tiles: [key][query] */
    float *row, *other_row;
} Backward;

static float
scale_of(const Backward *w)
{
    return w->b->linear ? 1 : (float)lh_attention_scale(w->b->args->scale, w->b->args->head_dim);
}

/* Targets of a packed tile: rows in lanes of @width and, unless NULL, panels of columns. */
typedef struct {
    float *lanes;
    size_t width;
    float *panels;
    float scale;
} Packed;

static void
pack(const Backward *w, const LhRows *tensor, uint64_t first, uint64_t rows, Packed to)
{
    const size_t tile = first / LH_TILE;
    const LhPack p = { .tensor = tensor,
                       .sequence = w->sequence,
                       .first = first,
                       .count = lh_least(LH_TILE, rows - first),
                       .rows = rows,
                       .head = tensor->heads == w->b->args->heads ? w->head : w->group,
                       .scale = to.scale,
                       .row = w->row };

    LH_SIMD(pack_lanes)(&p, to.lanes + tile * w->lanes_tile, to.width);
    if (to.panels != NULL)
        LH_SIMD(pack_rows)(&p, to.panels + tile * w->rows_tile, LH_NR);
}

static void
begin_group(const Backward *w)
{
    const LhBackward *b = w->b;
    const uint64_t nk = b->args->nk, padded = lh_round(nk, LH_VL);

    for (uint64_t j = 0; j < nk; j += LH_TILE) {
        pack(w, &b->k, j, nk, (Packed){ w->k_lanes, LH_MR, w->k_rows, 1 });
        pack(w, &b->v, j, nk, (Packed){ w->v_lanes, LH_MR, NULL, 1 });
    }
    memset(w->dk, 0, padded * w->columns * sizeof(float));
    memset(w->dv, 0, padded * w->columns * sizeof(float));
}

/* rowsum(do * o), in fp64 since it is subtracted from numbers of similar size. */
static float
delta_of(const Backward *w, uint64_t i)
{
    const LhBackward *b = w->b;
    double sum = 0;

    if (b->delta.data != NULL)
        return *lh_stat_at(&b->delta, w->sequence, i, w->head);
    lh_expect_row(&b->o, w->sequence, i, b->args->nq, w->head);
    LH_SIMD(to_fp32)(w->row, lh_rows_at(&b->o, w->sequence, i, w->head), b->o.storage, w->dim);
    LH_SIMD(to_fp32)
    (w->other_row, lh_rows_at(&b->dout, w->sequence, i, w->head), b->dout.storage, w->dim);
    for (size_t c = 0; c < w->dim; c++)
        sum += (double)w->row[c] * (double)w->other_row[c];
    return (float)sum;
}

static void
begin_head(const Backward *w)
{
    const LhBackward *b = w->b;
    const uint64_t nq = b->args->nq, padded = lh_round(nq, LH_VL);

    for (uint64_t i = 0; i < nq; i += LH_TILE) {
        pack(w, &b->q, i, nq, (Packed){ w->q_lanes, LH_NR, w->q_rows, scale_of(w) });
        pack(w, &b->dout, i, nq, (Packed){ w->do_lanes, LH_NR, w->do_rows, 1 });
    }
    memset(w->dq, 0, padded * w->columns * sizeof(float));
    for (uint64_t i = 0; i < padded && !b->linear; i++) {
        const float lse = i < nq ? *lh_stat_at(&b->lse, w->sequence, i, w->head) : INFINITY;

        /* Rows without keys and rows beyond the last: e^(s - inf) = 0. */
        w->lse[i] = lse == -INFINITY ? INFINITY : lse;
        w->delta[i] = i < nq ? delta_of(w, i) : 0;
    }
}

/* P = e^(S - lse), dS = P (dP - delta). */
static void
differentiate(const Backward *w, uint64_t i, size_t rows, size_t keys)
{
    for (size_t r = 0; r < rows; r += LH_VL) {
        const LhVector lse = lh_load(w->lse + i + r), delta = lh_load(w->delta + i + r);

        for (size_t k = 0; k < keys; k++) {
            float *weight = w->weights + k * LH_TILE + r, *ds = w->gradient + k * LH_TILE + r;
            const LhVector p = lh_exp(lh_load(weight) - lse);

            lh_store(weight, p);
            lh_store(ds, p * (lh_load(ds) - delta));
        }
    }
}

/* P = S D, dS = dP D, D the distance weights. */
static void
differentiate_linear(const Backward *w, uint64_t i, uint64_t j, size_t rows, size_t keys)
{
    for (size_t k = 0; k < keys && w->b->decay != NULL; k++) {
        for (size_t r = 0; r < rows; r += LH_VL) {
            float *weight = w->weights + k * LH_TILE + r, *ds = w->gradient + k * LH_TILE + r;
            const LhVector by = lh_load_any(w->b->decay + (LH_DECAY_BEFORE + i + r - j - k));

            lh_store(weight, lh_load(weight) * by);
            lh_store(ds, lh_load(ds) * by);
        }
    }
}

/* The inner products of a pair of tiles: scores and dP; depth is the head dimension. */
static void
multiply_in(const Backward *w, size_t i, size_t j, size_t rows, size_t keys)
{
    LhProduct p = { .c = w->weights,
                    .c_stride = LH_TILE,
                    .rows = keys,
                    .columns = lh_round(rows, LH_VL),
                    .depth = w->dim,
                    .a = w->k_lanes + j / LH_TILE * w->lanes_tile,
                    .a_panel = LH_MR * w->dim,
                    .b = w->q_lanes + i / LH_TILE * w->lanes_tile,
                    .b_panel = LH_NR * w->dim };

    LH_SIMD(product_panels)(&p);
    p.c = w->gradient;
    p.a = w->v_lanes + j / LH_TILE * w->lanes_tile;
    p.b = w->do_lanes + i / LH_TILE * w->lanes_tile;
    LH_SIMD(product_panels)(&p);
}

/* dv += P^T do, dk += dS^T q, dq += dS k. */
static void
multiply_out(const Backward *w, size_t i, size_t j, size_t rows, size_t keys)
{
    LhProduct p = { .c = w->dv + j * w->columns,
                    .c_stride = w->columns,
                    .rows = keys,
                    .columns = lh_round(w->dim, LH_VL),
                    .depth = rows,
                    .a = w->weights,
                    .a_panel = LH_MR * LH_TILE,
                    .b = w->do_rows + i / LH_TILE * w->rows_tile,
                    .b_panel = LH_TILE * LH_NR,
                    .add = true };

    LH_SIMD(product_rows)(&p);
    p.c = w->dk + j * w->columns;
    p.a = w->gradient;
    p.b = w->q_rows + i / LH_TILE * w->rows_tile;
    LH_SIMD(product_rows)(&p);
    p.c = w->dq + i * w->columns;
    p.rows = rows;
    p.depth = keys;
    p.a_panel = LH_MR;
    p.b = w->k_rows + j / LH_TILE * w->rows_tile;
    LH_SIMD(product_columns)(&p);
}

/* Masked scores get weight 0: by e^-inf, or, in linear attention, directly. */
static void
backward_tiles(const Backward *w, uint64_t i, uint64_t j, LhTileSight sight)
{
    const LhKernelArgs *a = w->b->args;
    const size_t rows = lh_least(LH_TILE, a->nq - i), keys = lh_least(LH_TILE, a->nk - j);
    const LhTileQueries *q_at = &w->mask.queries[i / LH_TILE];
    const LhTileKeys *k_at = &w->mask.keys[j / LH_TILE];

    multiply_in(w, i, j, rows, keys);
    if (sight == LH_TILE_PARTLY)
        LH_SIMD(hide)(w->weights, q_at, k_at, rows, keys, w->b->linear ? 0 : -INFINITY);
    if (sight == LH_TILE_PARTLY && w->b->linear)
        LH_SIMD(hide)(w->gradient, q_at, k_at, rows, keys, 0);
    if (w->b->linear)
        differentiate_linear(w, i, j, rows, keys);
    else
        differentiate(w, i, rows, keys);
    multiply_out(w, i, j, rows, keys);
}

static void
backward_head(const Backward *w)
{
    const LhKernelArgs *a = w->b->args;

    for (uint64_t j = 0; j < a->nk; j += LH_TILE) {
        for (uint64_t i = 0; i < a->nq; i += LH_TILE) {
            const LhTileSight sight =
                lh_tile_sight(&w->mask.queries[i / LH_TILE], &w->mask.keys[j / LH_TILE]);

            if (sight != LH_TILE_HIDDEN)
                backward_tiles(w, i, j, sight);
        }
    }
}

/* Rounds sums to their tensor; adds to its contents if the gradients accumulate. */
static void
write_rows(const Backward *w, const LhRows *tensor, uint64_t rows, float *sums, float scale)
{
    const uint32_t head = tensor->heads == w->b->args->heads ? w->head : w->group;

    for (uint64_t r = 0; r < rows; r++) {
        void *target = lh_rows_at(tensor, w->sequence, r, head);
        float *sum = sums + r * w->columns;

        for (size_t c = 0; c < w->dim; c++)
            sum[c] *= scale;
        if (w->b->load) {
            lh_expect_row(tensor, w->sequence, r, rows, head);
            LH_SIMD(to_fp32)(w->row, target, tensor->storage, w->dim);
            for (size_t c = 0; c < w->dim; c++)
                sum[c] += w->row[c];
        }
        LH_SIMD(from_fp32)(target, tensor->storage, sum, w->dim);
    }
}

static void
backward_group(Backward *w)
{
    const LhKernelArgs *a = w->b->args;
    const uint32_t share = a->heads / a->groups, end = (w->group + 1) * share;

    w->head = w->group * share;
    begin_group(w);
    for (w->head = w->group * share; w->head < end; w->head++) {
        begin_head(w);
        backward_head(w);
        write_rows(w, &w->b->dq, a->nq, w->dq, scale_of(w));
    }
    /*
     * dk and dv have as many heads as k and v, so either index works when every query head has its
     * own.
     */
    w->head = end - 1;
    write_rows(w, &w->b->dk, a->nk, w->dk, 1);
    write_rows(w, &w->b->dv, a->nk, w->dv, 1);
}

void
LH_SIMD(backward)(const LhBackward *b)
{
    const LhKernelArgs *a = b->args;
    const size_t queries = lh_round(a->nq, LH_TILE), keys = lh_round(a->nk, LH_TILE);
    LhScratch scratch = { b->scratch };
    Backward w = { .b = b, .dim = a->head_dim, .columns = lh_round(a->head_dim, LH_NR) };

    w.lanes_tile = LH_TILE * w.dim;
    w.rows_tile = LH_TILE * w.columns;
    w.k_lanes = lh_take(&scratch, keys * w.dim);
    w.v_lanes = lh_take(&scratch, keys * w.dim);
    w.k_rows = lh_take(&scratch, keys * w.columns);
    w.dk = lh_take(&scratch, keys * w.columns);
    w.dv = lh_take(&scratch, keys * w.columns);
    w.q_lanes = lh_take(&scratch, queries * w.dim);
    w.do_lanes = lh_take(&scratch, queries * w.dim);
    w.q_rows = lh_take(&scratch, queries * w.columns);
    w.do_rows = lh_take(&scratch, queries * w.columns);
    w.dq = lh_take(&scratch, queries * w.columns);
    w.lse = lh_take(&scratch, queries);
    w.delta = lh_take(&scratch, queries);
    w.weights = lh_take(&scratch, LH_TILE * LH_TILE);
    w.gradient = lh_take(&scratch, LH_TILE * LH_TILE);
    w.row = lh_take(&scratch, w.columns);
    w.other_row = lh_take(&scratch, w.columns);
    w.mask = lh_tile_mask(a, &b->q, &b->k, lh_take(&scratch, lh_tile_mask_bytes(a) / 4));
    for (w.sequence = 0; w.sequence < a->batch; w.sequence++) {
        for (w.group = 0; w.group < a->groups; w.group++)
            backward_group(&w);
    }
}
