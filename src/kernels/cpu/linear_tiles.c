/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causal linear attention among the tokens of a call, in tiles of LH_LINEAR_TILE tokens: pairs
 * within a tile by the level's attention, all earlier tiles by their state. Time is linear in the
 * tokens. A tile's results are summed in fp32 and rounded once.
 */
#include "kernels/cpu/linear_tiles.h"
#include "kernels/cpu/cpu.h"
#include "kernels/sizes.h"

/* Scratch memory, allocated in whole cache lines; without a base it is only counted. */
typedef struct {
    unsigned char *base;
    uint64_t used;
} Memory;

static void *
take(Memory *m, uint64_t bytes)
{
    void *taken = m->base == NULL ? NULL : m->base + m->used;

    m->used += (bytes + LH_SCRATCH_ALIGN - 1) / LH_SCRATCH_ALIGN * LH_SCRATCH_ALIGN;
    return taken;
}

/* State shared by the tiles of a call. */
typedef struct {
    const LhKernelArgs *args;
    const LhCpuLevel *cpu;
    double *of_queries, *of_keys; /* weights of the rows of a tile */
    float *state;
    float *row;    /* of one head */
    LhRows sum;    /* of a tile's queries */
    LhRows k, v;   /* sums of the whole call's keys; backward only */
    void *scratch; /* of the level */
} Tiles;

static LhRows
fp32_rows(Memory *m, const LhKernelArgs *a, uint64_t rows, uint32_t heads)
{
    const uint64_t bytes = a->batch * rows * heads * a->head_dim * LH_FP32_BYTES;

    return (LhRows){ .data = take(m, bytes),
                     .part_bytes = bytes,
                     .part_rows = rows,
                     .heads = heads,
                     .dim = a->head_dim,
                     .storage = LH_STORAGE_FP32 };
}

/* Returns the bytes of @scratch used, without those of the level. */
static uint64_t
lay_out(Tiles *t, const LhKernelArgs *args, void *scratch, bool backward)
{
    Memory m = { .base = scratch };

    t->args = args;
    t->of_queries = take(&m, LH_LINEAR_TILE * sizeof(double));
    t->of_keys = take(&m, LH_LINEAR_TILE * sizeof(double));
    t->state = take(&m, lh_state_elements(args) * LH_FP32_BYTES);
    t->row = take(&m, args->head_dim * LH_FP32_BYTES);
    t->sum = fp32_rows(&m, args, LH_LINEAR_TILE, args->heads);
    if (backward) {
        t->k = fp32_rows(&m, args, args->nk, args->groups);
        t->v = fp32_rows(&m, args, args->nk, args->groups);
    }
    t->scratch = take(&m, 0);
    return m.used;
}

static void
begin(Tiles *t, const LhKernelArgs *args, void *scratch, bool backward)
{
    lay_out(t, args, scratch, backward);
    t->cpu = lh_cpu();
    lh_decay_queries(args, t->of_queries, LH_LINEAR_TILE);
    lh_decay_keys(args, t->of_keys, LH_LINEAR_TILE);
}

static LhKernelArgs
tile_args(const LhKernelArgs *a, uint64_t first)
{
    LhKernelArgs tile = *a;

    tile.nq = tile.nk = a->nq - first < LH_LINEAR_TILE ? a->nq - first : LH_LINEAR_TILE;
    return tile;
}

static LhRows
rows_from(LhRows rows, uint64_t first)
{
    rows.first += first;
    return rows;
}

/* target (+)= sums of @rows rows. */
static void
store(const Tiles *t, const LhRows *sums, const LhRows *target, uint64_t rows, bool load)
{
    const uint32_t d = t->args->head_dim;

    for (uint64_t b = 0; b < t->args->batch; b++) {
        for (uint64_t i = 0; i < rows * target->heads; i++) {
            const uint32_t head = (uint32_t)(i % target->heads);
            void *at = lh_rows_at(target, b, i / target->heads, head);
            float *sum = lh_rows_at(sums, b, i / target->heads, head);

            if (load) {
                t->cpu->to_fp32(t->row, at, target->storage, d);
                for (uint32_t c = 0; c < d; c++)
                    sum[c] += t->row[c];
            }
            t->cpu->from_fp32(at, target->storage, sum, d);
        }
    }
}

/* out += in times the state or its transpose. */
static void
apply(const Tiles *t, const LhKernelArgs *args, LhRows in, LhRows out, const double *weights,
      bool transpose)
{
    const LhStateApply s = { .args = args,
                             .in = in,
                             .out = out,
                             .rows = args->nq,
                             .state = t->state,
                             .weights = weights,
                             .transpose = transpose,
                             .load = true,
                             .scratch = t->scratch };

    t->cpu->state_apply(&s);
}

static void
take_in(const Tiles *t, const LhKernelArgs *args, LhRows x, LhRows y, const double *weights,
        bool start)
{
    const LhStateSum s = { .args = args,
                           .x = x,
                           .y = y,
                           .rows = args->nq,
                           .state = t->state,
                           .weights = weights,
                           .keep = start ? 0 : lh_decay_power(args, args->nq),
                           .scratch = t->scratch };

    t->cpu->state_sum(&s);
}

/* f's scratch holds the decay table, then the memory of the tiles. */
void
lh_linear_forward_tiles(const LhForward *f)
{
    const uint64_t n = f->args->nq;
    Tiles t = { 0 };

    begin(&t, f->args, f->scratch, false);
    for (uint64_t first = 0; first < n; first += LH_LINEAR_TILE) {
        const LhKernelArgs args = tile_args(f->args, first);
        const LhRows o = rows_from(f->o, first);
        LhForward tile = *f;

        tile.args = &args;
        tile.q = rows_from(f->q, first);
        tile.k = rows_from(f->k, first);
        tile.v = rows_from(f->v, first);
        tile.o = t.sum;
        tile.load = false;
        tile.scratch = t.scratch;
        t.cpu->forward(&tile);
        if (first > 0)
            apply(&t, &args, tile.q, t.sum, t.of_queries, false);
        if (first + args.nq < n)
            take_in(&t, &args, tile.k, tile.v, t.of_keys, first == 0);
        store(&t, &t.sum, &o, args.nq, f->load);
    }
}

/* Computes dq, and the tile's own contribution to dk and dv. */
static void
backward_tile(const Tiles *t, const LhBackward *b, uint64_t first)
{
    const LhKernelArgs args = tile_args(b->args, first);
    const LhRows dq = rows_from(b->dq, first);
    LhBackward tile = *b;

    tile.args = &args;
    tile.q = rows_from(b->q, first);
    tile.dout = rows_from(b->dout, first);
    tile.k = rows_from(b->k, first);
    tile.v = rows_from(b->v, first);
    tile.dq = t->sum;
    tile.dk = rows_from(t->k, first);
    tile.dv = rows_from(t->v, first);
    tile.load = false;
    tile.scratch = t->scratch;
    t->cpu->backward(&tile);
    if (first > 0)
        apply(t, &args, tile.dout, t->sum, t->of_queries, true);
    if (first + args.nq < b->args->nq)
        take_in(t, &args, tile.k, tile.v, t->of_keys, first == 0);
    store(t, &t->sum, &dq, args.nq, b->load);
}

/*
 * Adds the contribution of later tokens to a tile's dk and dv; @t's state now holds the state's
 * gradient.
 */
static void
backward_through_state(const Tiles *t, const LhBackward *b, uint64_t first)
{
    const LhKernelArgs args = tile_args(b->args, first);
    const bool last = first + args.nq == b->args->nq;

    if (!last) {
        apply(t, &args, rows_from(b->v, first), rows_from(t->k, first), t->of_keys, true);
        apply(t, &args, rows_from(b->k, first), rows_from(t->v, first), t->of_keys, false);
    }
    if (first > 0)
        take_in(t, &args, rows_from(b->q, first), rows_from(b->dout, first), t->of_queries, last);
}

void
lh_linear_backward_tiles(const LhBackward *b)
{
    const uint64_t n = b->args->nq, tiles = lh_linear_tiles(b->args).count;
    Tiles t = { 0 };

    begin(&t, b->args, b->scratch, true);
    for (uint64_t i = 0; i < tiles; i++)
        backward_tile(&t, b, i * LH_LINEAR_TILE);
    for (uint64_t i = tiles; i > 0; i--)
        backward_through_state(&t, b, (i - 1) * LH_LINEAR_TILE);
    store(&t, &t.k, &b->dk, n, b->load);
    store(&t, &t.v, &b->dv, n, b->load);
}

static uint64_t
tiles_scratch(const LhKernelArgs *a, bool backward, uint64_t pairs_scratch)
{
    Tiles t = { 0 };
    const uint64_t own = lay_out(&t, a, NULL, backward);
    const uint64_t products = lh_state_scratch(a);

    return own + (pairs_scratch > products ? pairs_scratch : products);
}

/* Scratch after the decay table: of the whole call, or of the tiles and one tile's attention. */
uint64_t
lh_linear_forward_scratch(const LhKernelArgs *a)
{
    const LhKernelArgs tile = tile_args(a, 0);
    const uint64_t whole = lh_attention_forward_scratch(a);
    const uint64_t tiles = lh_linear_tiles(a).count <= 1
                               ? 0
                               : tiles_scratch(a, false, lh_attention_forward_scratch(&tile));

    return lh_weights_scratch(a->nq) + (whole > tiles ? whole : tiles);
}

uint64_t
lh_linear_backward_scratch(const LhKernelArgs *a)
{
    const LhKernelArgs tile = tile_args(a, 0);
    const uint64_t whole = lh_attention_backward_scratch(a);
    const uint64_t tiles = lh_linear_tiles(a).count <= 1
                               ? 0
                               : tiles_scratch(a, true, lh_attention_backward_scratch(&tile));

    return lh_weights_scratch(a->nq) + (whole > tiles ? whole : tiles);
}
