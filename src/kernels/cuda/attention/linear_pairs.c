/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear attention among the tokens of a call. Under a causal mask the pairs within tiles of
 * LH_LINEAR_TILE tokens are one product for all tiles, and the states of tiles another; a scan
 * turns these into the states before each tile. Under other masks pairs are computed LH_LINEAR_TILE
 * queries, or keys, at a time.
 */
#include "kernels/cpu/linear_run.h"
#include "kernels/cuda/attention/linear.h"
#include "kernels/cuda/attention/linear_decay.h"
#include "kernels/cuda/product/host_product.h"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/table.h"
#include "kernels/sizes.h"

#define RUNS(word, scratch)                                                                        \
    const LhCudaKernel lh_cuda_kernel_##word = { .run = word, .scratch_bytes = scratch };
#define ROWS_MOST (UINT64_C(1) << 31)

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const enum lh_status status_ = (call);                                                     \
        if (status_ != LH_STATUS_OK)                                                               \
            return status_;                                                                        \
    } while (0)

/*
 * A call of linear_intra or its gradient. `pairs` holds the weights, `gradients` the gradients of
 * the weights.
 */
typedef struct {
    const LhKernelArgs *a;
    void *stream;
    LhRows q, k, v, o, dout, dq, dk, dv;
    LhCudaMask mask;
    void *of_mask;
    uint32_t tiles;                   /* of a causal call, else 0 */
    unsigned char *pairs, *gradients; /* of all tiles; or of a block of queries and all keys, or
                                         of keys and all queries */
    unsigned char *states, *dstates;  /* before and after each tile */
} Intra;

/* Rows per block of pairs without tiles. */
static uint64_t
block_of(uint64_t rows, uint64_t first)
{
    return rows - first < LH_LINEAR_TILE ? rows - first : LH_LINEAR_TILE;
}

static void
lay_out(Intra *w, const LhKernelArgs *a, void *memory, bool backward, LhCudaScratch *s)
{
    const uint64_t stacks = (uint64_t)a->batch * a->heads, most = a->nq > a->nk ? a->nq : a->nk;
    uint64_t pairs;

    *s = (LhCudaScratch){ .base = memory };
    w->a = a;
    w->tiles = (uint32_t)lh_linear_tiles(a).count;
    pairs =
        stacks * LH_LINEAR_TILE * LH_FP32_BYTES * (w->tiles > 0 ? w->tiles * LH_LINEAR_TILE : most);
    w->of_mask = lh_cuda_take(s, lh_cuda_mask_bytes(a));
    w->pairs = lh_cuda_take(s, pairs);
    w->states = lh_cuda_take(s, w->tiles * lh_state_elements(a) * LH_FP32_BYTES);
    if (backward) {
        w->gradients = lh_cuda_take(s, pairs);
        w->dstates = lh_cuda_take(s, w->tiles * lh_state_elements(a) * LH_FP32_BYTES);
    }
}

static LhCudaFactor
of_tiles(const Intra *w, unsigned char *data, bool states, uint32_t heads)
{
    const uint32_t side = states ? w->a->head_dim : (uint32_t)LH_LINEAR_TILE;
    const LhCudaStack stack = {
        .data = data, .rows = side, .columns = side, .tiles = w->tiles, .heads = w->a->heads
    };

    return lh_cuda_factor_of_stack(&stack, heads);
}

/* A factor of rows of tokens; each tile has its own rows. */
static bool
of_tokens(LhCudaFactor *f, const LhRows *rows, uint32_t heads)
{
    if (!lh_cuda_factor_of_rows(f, rows, heads))
        return false;
    f->by_items = true;
    return true;
}

static LhCudaProduct
product_of_tiles(const Intra *w, uint32_t heads, uint64_t rows, uint64_t columns)
{
    LhCudaProduct p = lh_cuda_product(w->a->batch, heads, rows, columns);

    p.tiles = w->tiles;
    p.items = (uint32_t)w->a->nq;
    p.tile_items = (uint32_t)LH_LINEAR_TILE;
    return p;
}

/* Computes the pairs of all tiles: x y^T under the mask. */
static enum lh_status
multiply_tokens(const Intra *w, const LhRows *x, const LhRows *y, unsigned char *to)
{
    LhCudaProduct p = product_of_tiles(w, w->a->heads, 0, 0);

    p.rows.tiled = p.columns.tiled = true;
    p.terms[0].b_transposed = true;
    p.terms[0].depth.size = w->a->head_dim;
    p.pairs = (LhCudaPairs){ .mask = w->mask, .masked = true, .decay = lh_cuda_log2_decay(w->a) };
    p.c = of_tiles(w, to, false, w->a->heads);
    if (!of_tokens(&p.terms[0].a, x, w->a->heads) || !of_tokens(&p.terms[0].b, y, w->a->heads))
        return LH_STATUS_UNSUPPORTED;
    return lh_cuda_multiply(&p, w->stream);
}

/* Computes the states before (or after) each tile: sums of weight x^T y over the other tiles. */
static enum lh_status
find_states(const Intra *w, const LhRows *x, const LhRows *y, bool backward)
{
    const LhKernelArgs *a = w->a;
    unsigned char *to = backward ? w->dstates : w->states;
    const LhCudaScan scan = { .states = (float *)(void *)to,
                              .stacks = (uint64_t)a->batch * a->heads,
                              .elements = (uint64_t)a->head_dim * a->head_dim,
                              .tiles = w->tiles,
                              .factor = (float)lh_decay_power(a, LH_LINEAR_TILE),
                              .backward = backward };
    LhCudaProduct p = product_of_tiles(w, a->heads, a->head_dim, a->head_dim);
    enum lh_status status;

    if (w->tiles == 1)
        return LH_STATUS_OK;
    p.terms[0].a_transposed = true;
    p.terms[0].depth.tiled = true;
    p.terms[0].weighed = true;
    p.terms[0].weights =
        backward ? lh_cuda_query_weights(a) : lh_cuda_key_weights(a, LH_LINEAR_TILE);
    p.c = of_tiles(w, to, true, a->heads);
    if (!of_tokens(&p.terms[0].a, x, a->heads) || !of_tokens(&p.terms[0].b, y, a->heads))
        return LH_STATUS_UNSUPPORTED;
    status = lh_cuda_multiply(&p, w->stream);
    return status != LH_STATUS_OK ? status : lh_cuda_scan(&scan, w->stream);
}

/* Sum over pairs plus product with the state, for each tile's rows. */
typedef struct {
    unsigned char *pairs, *states;
    const LhRows *over; /* rows summed with the weights of pairs */
    const LhRows *rows; /* rows multiplied by the state */
    const LhRows *sum;
    LhCudaWeights weights;
    bool by_keys; /* pairs are transposed */
    bool transposed;
} TileSum;

static enum lh_status
sum_tiles(const Intra *w, const TileSum *s)
{
    const uint32_t heads = s->sum->heads;
    LhCudaProduct p = product_of_tiles(w, heads, 0, w->a->head_dim);

    p.rows.tiled = true;
    p.terms_count = w->tiles > 1 ? 2 : 1;
    p.terms[0].a = of_tiles(w, s->pairs, false, heads);
    p.terms[0].a_transposed = s->by_keys;
    p.terms[0].depth.tiled = true;
    p.terms[1].b = of_tiles(w, s->states, true, heads);
    p.terms[1].b_transposed = s->transposed;
    p.terms[1].depth.size = w->a->head_dim;
    p.terms[1].weighed = true;
    p.terms[1].weights = s->weights;
    p.terms[0].repeats = p.terms[1].repeats = w->a->heads / heads;
    p.keep = w->a->first ? 0 : 1;
    if (!of_tokens(&p.terms[0].b, s->over, heads) || !of_tokens(&p.terms[1].a, s->rows, heads) ||
        !of_tokens(&p.c, s->sum, heads))
        return LH_STATUS_UNSUPPORTED;
    return lh_cuda_multiply(&p, w->stream);
}

static enum lh_status
forward_tiles(const Intra *w)
{
    const TileSum o = { .pairs = w->pairs,
                        .states = w->states,
                        .over = &w->v,
                        .rows = &w->q,
                        .sum = &w->o,
                        .weights = lh_cuda_query_weights(w->a) };

    TRY(multiply_tokens(w, &w->q, &w->k, w->pairs));
    TRY(find_states(w, &w->k, &w->v, false));
    return sum_tiles(w, &o);
}

static enum lh_status
backward_tiles(const Intra *w)
{
    const LhCudaWeights of_rows = lh_cuda_key_weights(w->a, LH_LINEAR_TILE);
    const TileSum dq = { .pairs = w->gradients,
                         .states = w->states,
                         .over = &w->k,
                         .rows = &w->dout,
                         .sum = &w->dq,
                         .weights = lh_cuda_query_weights(w->a),
                         .transposed = true };
    const TileSum dk = { .pairs = w->gradients,
                         .states = w->dstates,
                         .over = &w->q,
                         .rows = &w->v,
                         .sum = &w->dk,
                         .weights = of_rows,
                         .by_keys = true,
                         .transposed = true };
    const TileSum dv = { .pairs = w->pairs,
                         .states = w->dstates,
                         .over = &w->dout,
                         .rows = &w->k,
                         .sum = &w->dv,
                         .weights = of_rows,
                         .by_keys = true };

    TRY(multiply_tokens(w, &w->q, &w->k, w->pairs));
    TRY(multiply_tokens(w, &w->dout, &w->v, w->gradients));
    TRY(find_states(w, &w->k, &w->v, false));
    TRY(find_states(w, &w->q, &w->dout, true));
    TRY(sum_tiles(w, &dq));
    TRY(sum_tiles(w, &dk));
    return sum_tiles(w, &dv);
}

/* A block of queries and keys of a call without tiles. */
typedef struct {
    uint64_t q, queries, k, keys;
} Block;

/* Computes the pairs of a block: x y^T under the mask. */
static enum lh_status
multiply_block(const Intra *w, const Block *b, const LhRows *x, const LhRows *y, unsigned char *to)
{
    const LhCudaStack stack = { .data = to,
                                .rows = (uint32_t)b->queries,
                                .columns = (uint32_t)b->keys,
                                .tiles = 1,
                                .heads = w->a->heads };
    LhCudaProduct p = lh_cuda_product(w->a->batch, w->a->heads, b->queries, b->keys);

    p.terms[0].b_transposed = true;
    p.terms[0].depth.size = w->a->head_dim;
    p.pairs = (LhCudaPairs){ .mask = w->mask,
                             .masked = true,
                             .row = (uint32_t)b->q,
                             .column = (uint32_t)b->k,
                             .decay = lh_cuda_log2_decay(w->a) };
    p.c = lh_cuda_factor_of_stack(&stack, w->a->heads);
    if (!lh_cuda_factor_of_rows(&p.terms[0].a, x, w->a->heads) ||
        !lh_cuda_factor_of_rows(&p.terms[0].b, y, w->a->heads))
        return LH_STATUS_UNSUPPORTED;
    p.terms[0].a.first = (uint32_t)b->q;
    p.terms[0].b.first = (uint32_t)b->k;
    return lh_cuda_multiply(&p, w->stream);
}

/*
 * sum (+)= a block's pairs times @over by its keys; or, with by_keys, transposed pairs times @over
 * by its queries.
 */
typedef struct {
    unsigned char *pairs;
    const LhRows *over, *sum;
    bool by_keys;
} BlockSum;

static enum lh_status
sum_block(const Intra *w, const Block *b, const BlockSum *s)
{
    const uint32_t heads = s->sum->heads;
    const LhCudaStack stack = { .data = s->pairs,
                                .rows = (uint32_t)b->queries,
                                .columns = (uint32_t)b->keys,
                                .tiles = 1,
                                .heads = w->a->heads };
    LhCudaProduct p =
        lh_cuda_product(w->a->batch, heads, s->by_keys ? b->keys : b->queries, w->a->head_dim);

    p.terms[0].a = lh_cuda_factor_of_stack(&stack, heads);
    p.terms[0].a_transposed = s->by_keys;
    p.terms[0].repeats = w->a->heads / heads;
    p.terms[0].depth.size = (uint32_t)(s->by_keys ? b->queries : b->keys);
    /* With an empty mask the pairs are undefined. */
    p.terms_count = w->mask.empty ? 0 : 1;
    p.keep = w->a->first ? 0 : 1;
    if (!lh_cuda_factor_of_rows(&p.terms[0].b, s->over, heads) ||
        !lh_cuda_factor_of_rows(&p.c, s->sum, heads))
        return LH_STATUS_UNSUPPORTED;
    p.terms[0].b.first = (uint32_t)(s->by_keys ? b->q : b->k);
    p.c.first = (uint32_t)(s->by_keys ? b->k : b->q);
    return lh_cuda_multiply(&p, w->stream);
}

static enum lh_status
forward_pairs(const Intra *w)
{
    const BlockSum o = { w->pairs, &w->v, &w->o, false };
    Block b = { .keys = w->a->nk };

    for (; b.q < w->a->nq; b.q += b.queries) {
        b.queries = block_of(w->a->nq, b.q);
        TRY(multiply_block(w, &b, &w->q, &w->k, w->pairs));
        TRY(sum_block(w, &b, &o));
    }
    return LH_STATUS_OK;
}

static enum lh_status
backward_pairs(const Intra *w)
{
    const BlockSum dq = { w->gradients, &w->k, &w->dq, false };
    const BlockSum dk = { w->gradients, &w->q, &w->dk, true };
    const BlockSum dv = { w->pairs, &w->dout, &w->dv, true };
    Block of_queries = { .keys = w->a->nk }, of_keys = { .queries = w->a->nq };

    for (Block *b = &of_queries; b->q < w->a->nq; b->q += b->queries) {
        b->queries = block_of(w->a->nq, b->q);
        TRY(multiply_block(w, b, &w->dout, &w->v, w->gradients));
        TRY(sum_block(w, b, &dq));
    }
    for (Block *b = &of_keys; b->k < w->a->nk; b->k += b->keys) {
        b->keys = block_of(w->a->nk, b->k);
        TRY(multiply_block(w, b, &w->dout, &w->v, w->gradients));
        TRY(sum_block(w, b, &dk));
        TRY(multiply_block(w, b, &w->q, &w->k, w->pairs));
        TRY(sum_block(w, b, &dv));
    }
    return LH_STATUS_OK;
}

/*
 * Builds the mask. Rejects what the CPU version rejects, and more rows than device code can index.
 */
static enum lh_status
prepare(const LhCall *call, Intra *w, bool backward, void *stream)
{
    const LhKernelArgs *a = call->args;
    LhCudaScratch s;

    w->stream = stream;
    lay_out(w, a, call->scratch, backward, &s);
    if ((lh_cuda_log2_decay(a) != 0 && a->mask != LH_MASK_CAUSAL && a->mask != LH_MASK_EMPTY) ||
        a->nq >= ROWS_MOST || a->nk >= ROWS_MOST)
        return LH_STATUS_UNSUPPORTED;
    return lh_cuda_mask(a, w->q.part_rows, w->k.part_rows, w->of_mask, stream, &w->mask);
}

static enum lh_status
linear_intra(const LhCall *call, void *stream)
{
    Intra w = { .q = lh_rows_q(call, 0),
                .k = lh_rows_k(call, 1),
                .v = lh_rows_v(call, 1),
                .o = lh_rows_q(call, 2) };

    if (!lh_parts_divide(call, 3, 1 << 1))
        return LH_STATUS_UNSUPPORTED;
    TRY(prepare(call, &w, false, stream));
    return w.tiles > 0 ? forward_tiles(&w) : forward_pairs(&w);
}

static enum lh_status
linear_intra_bwd(const LhCall *call, void *stream)
{
    Intra w = { .q = lh_rows_q(call, 0),
                .dout = lh_rows_q(call, 1),
                .k = lh_rows_k(call, 2),
                .v = lh_rows_v(call, 2),
                .dq = lh_rows_q(call, 3),
                .dk = lh_rows_k(call, 4),
                .dv = lh_rows_v(call, 4) };

    if (!lh_parts_divide(call, 5, 1 << 2 | 1 << 4))
        return LH_STATUS_UNSUPPORTED;
    TRY(prepare(call, &w, true, stream));
    return w.tiles > 0 ? backward_tiles(&w) : backward_pairs(&w);
}

static uint64_t
intra_scratch(const LhKernelArgs *a)
{
    LhCudaScratch s;
    Intra w = { 0 };

    lay_out(&w, a, NULL, false, &s);
    return s.used;
}

static uint64_t
intra_bwd_scratch(const LhKernelArgs *a)
{
    LhCudaScratch s;
    Intra w = { 0 };

    lay_out(&w, a, NULL, true, &s);
    return s.used;
}

RUNS(linear_intra, intra_scratch)
RUNS(linear_intra_bwd, intra_bwd_scratch)
