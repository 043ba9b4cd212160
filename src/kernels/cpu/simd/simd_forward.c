/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention forward in tiles of LH_TILE queries by LH_TILE keys (Dao's FlashAttention, one thread).
 * Scores are computed transposed, S^T = K Q^T, with queries in lanes: row maxima and sums need no
 * shuffles, and S^T is directly the left factor of P V. k and v are converted and packed once per
 * key-value head, q once per tile. Bound by multiply-adds; exponentials take about 1/10.
 */
#include "kernels/cpu/simd/simd.h"

#include <math.h>

/* State of one key-value head: packed keys and values, and the current tile of queries. */
typedef struct {
    const LhForward *f;
    LhTileMask mask;
    uint64_t sequence;
    uint32_t head, group;
    size_t dim, columns, key_tile, value_tile; /* floats of a packed tile */
    float *keys, *values, *queries;
    float *weights; /* S^T, then P^T: [key][query] */
    float *o, *m, *l, *row;
} Forward;

static LhPack
pack_of(const Forward *w, const LhRows *tensor, uint64_t first, uint64_t rows, uint32_t head)
{
    return (LhPack){ .tensor = tensor,
                     .sequence = w->sequence,
                     .first = first,
                     .count = lh_least(LH_TILE, rows - first),
                     .rows = rows,
                     .head = head,
                     .scale = 1,
                     .row = w->row };
}

static void
pack_group(Forward *w)
{
    const LhForward *f = w->f;

    for (uint64_t j = 0, t = 0; j < f->args->nk; j += LH_TILE, t++) {
        const LhPack k = pack_of(w, &f->k, j, f->args->nk, w->group);
        const LhPack v = pack_of(w, &f->v, j, f->args->nk, w->group);

        LH_SIMD(pack_lanes)(&k, w->keys + t * w->key_tile, LH_MR);
        LH_SIMD(pack_rows)(&v, w->values + t * w->value_tile, LH_NR);
    }
}

static void
begin_tile(Forward *w, uint64_t i, size_t rows)
{
    const LhForward *f = w->f;
    const size_t padded = lh_round(rows, LH_VL);
    LhPack q = pack_of(w, &f->q, i, f->args->nq, w->head);

    q.scale = f->linear ? 1 : (float)lh_attention_scale(f->args->scale, f->args->head_dim);
    LH_SIMD(pack_lanes)(&q, w->queries, LH_NR);
    memset(w->o, 0, padded * w->columns * sizeof(float));
    for (size_t r = 0; r < padded; r++) {
        const bool loaded = f->load && r < rows;

        w->m[r] =
            loaded && !f->linear ? *lh_stat_at(&f->m, w->sequence, i + r, w->head) : -INFINITY;
        w->l[r] = loaded && !f->linear ? *lh_stat_at(&f->l, w->sequence, i + r, w->head) : 0;
        if (!loaded)
            continue;
        lh_expect_row(&f->o, w->sequence, i + r, f->args->nq, w->head);
        LH_SIMD(to_fp32)
        (w->o + r * w->columns, lh_rows_at(&f->o, w->sequence, i + r, w->head), f->o.storage,
         w->dim);
    }
}

/* P^T = e^(S^T - m) and the new m and l; sets @factors to the factors for o. */
static void
soften(const Forward *w, size_t rows, size_t keys, float factors[LH_TILE])
{
    for (size_t r = 0; r < rows; r += LH_VL) {
        const LhVector before = lh_load(w->m + r);
        LhVector m = before, sum = { 0 }, base, factor;

        for (size_t k = 0; k < keys; k++)
            m = lh_max(m, lh_load(w->weights + k * LH_TILE + r));
        /* Rows without keys so far have m = -inf; -inf - -inf would be NaN. */
        base = lh_select(m == -INFINITY, (LhVector){ 0 }, m);
        for (size_t k = 0; k < keys; k++) {
            float *at = w->weights + k * LH_TILE + r;
            const LhVector p = lh_exp(lh_load(at) - base);

            lh_store(at, p);
            sum += p;
        }
        factor = lh_exp(before - base);
        lh_store(factors + r, factor);
        lh_store(w->l + r, lh_load(w->l + r) * factor + sum);
        lh_store(w->m + r, m);
    }
}

static void
rescale(const Forward *w, size_t rows, const float factors[LH_TILE])
{
    for (size_t r = 0; r < rows; r++) {
        float *o = w->o + r * w->columns;

        for (size_t c = 0; c < w->columns && factors[r] != 1; c += LH_VL)
            lh_store(o + c, lh_load(o + c) * factors[r]);
    }
}

/* Linear attention: distance weights. Lane r of key row k has distance i + r - j - k. */
static void
decay(const Forward *w, uint64_t i, uint64_t j, size_t rows, size_t keys)
{
    for (size_t k = 0; k < keys && w->f->decay != NULL; k++) {
        for (size_t r = 0; r < rows; r += LH_VL) {
            float *at = w->weights + k * LH_TILE + r;
            const float *by = w->f->decay + (LH_DECAY_BEFORE + i + r - j - k);

            lh_store(at, lh_load(at) * lh_load_any(by));
        }
    }
}

static void
attend(const Forward *w, uint64_t i, uint64_t j, size_t rows)
{
    const LhForward *f = w->f;
    const LhTileQueries *q_at = &w->mask.queries[i / LH_TILE];
    const LhTileKeys *k_at = &w->mask.keys[j / LH_TILE];
    const size_t keys = lh_least(LH_TILE, f->args->nk - j), tile = j / LH_TILE;
    _Alignas(LH_SCRATCH_ALIGN) float factors[LH_TILE];
    const LhProduct scores = { .c = w->weights,
                               .c_stride = LH_TILE,
                               .rows = keys,
                               .columns = lh_round(rows, LH_VL),
                               .depth = w->dim,
                               .a = w->keys + tile * w->key_tile,
                               .a_panel = LH_MR * w->dim,
                               .b = w->queries,
                               .b_panel = LH_NR * w->dim };
    const LhProduct output = { .c = w->o,
                               .c_stride = w->columns,
                               .rows = rows,
                               .columns = lh_round(w->dim, LH_VL),
                               .depth = keys,
                               .a = w->weights,
                               .a_panel = LH_MR,
                               .b = w->values + tile * w->value_tile,
                               .b_panel = LH_TILE * LH_NR,
                               .add = true };

    LH_SIMD(product_panels)(&scores);
    if (lh_tile_sight(q_at, k_at) == LH_TILE_PARTLY)
        LH_SIMD(hide)(w->weights, q_at, k_at, rows, keys, f->linear ? 0 : -INFINITY);
    if (f->linear) {
        decay(w, i, j, rows, keys);
    } else {
        soften(w, rows, keys, factors);
        rescale(w, rows, factors);
    }
    LH_SIMD(product_columns)(&output);
}

static void
end_tile(const Forward *w, uint64_t i, size_t rows)
{
    const LhForward *f = w->f;

    for (size_t r = 0; r < rows; r++) {
        float *o = w->o + r * w->columns;
        const float m = w->m[r], l = w->l[r];

        for (size_t c = 0; c < w->columns && f->normalise && l > 0; c += LH_VL)
            lh_store(o + c, lh_load(o + c) / l);
        LH_SIMD(from_fp32)(lh_rows_at(&f->o, w->sequence, i + r, w->head), f->o.storage, o, w->dim);
        if (f->m.data != NULL) {
            *lh_stat_at(&f->m, w->sequence, i + r, w->head) = m;
            *lh_stat_at(&f->l, w->sequence, i + r, w->head) = l;
        }
        if (f->lse.data != NULL)
            *lh_stat_at(&f->lse, w->sequence, i + r, w->head) =
                l == 0 ? -INFINITY : (float)((double)m + log((double)l));
    }
}

static void
forward_head(Forward *w)
{
    const LhKernelArgs *a = w->f->args;

    for (uint64_t i = 0; i < a->nq; i += LH_TILE) {
        const size_t rows = lh_least(LH_TILE, a->nq - i);
        const LhTileQueries *q_at = &w->mask.queries[i / LH_TILE];

        begin_tile(w, i, rows);
        for (uint64_t j = 0; j < a->nk; j += LH_TILE) {
            if (lh_tile_sight(q_at, &w->mask.keys[j / LH_TILE]) != LH_TILE_HIDDEN)
                attend(w, i, j, rows);
        }
        end_tile(w, i, rows);
    }
}

void
LH_SIMD(forward)(const LhForward *f)
{
    const LhKernelArgs *a = f->args;
    const size_t tiles = (a->nk + LH_TILE - 1) / LH_TILE, share = a->heads / a->groups;
    LhScratch scratch = { f->scratch };
    Forward w = { .f = f, .dim = a->head_dim, .columns = lh_round(a->head_dim, LH_NR) };

    w.key_tile = LH_TILE * w.dim;
    w.value_tile = LH_TILE * w.columns;
    w.keys = lh_take(&scratch, tiles * w.key_tile);
    w.values = lh_take(&scratch, tiles * w.value_tile);
    w.queries = lh_take(&scratch, LH_TILE * w.dim);
    w.weights = lh_take(&scratch, LH_TILE * LH_TILE);
    w.o = lh_take(&scratch, LH_TILE * w.columns);
    w.m = lh_take(&scratch, LH_TILE);
    w.l = lh_take(&scratch, LH_TILE);
    w.row = lh_take(&scratch, w.columns);
    w.mask = lh_tile_mask(a, &f->q, &f->k, lh_take(&scratch, lh_tile_mask_bytes(a) / 4));
    for (w.sequence = 0; w.sequence < a->batch; w.sequence++) {
        for (w.group = 0; w.group < a->groups; w.group++) {
            pack_group(&w);
            for (w.head = w.group * (uint32_t)share; w.head < (w.group + 1) * share; w.head++)
                forward_head(&w);
        }
    }
}
