/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear attention's products with the state: tiles of LH_TILE rows by d x d, 2 d^2 flops per token
 * and head; sums of states in fp32.
 */
#include "kernels/cpu/simd/simd.h"

/* Packs M, or its transpose, in panels of columns: [d / LH_NR][d][LH_NR]. */
static void
pack_state(float *target, const float *state, size_t dim, bool transpose)
{
    const size_t padded = lh_round(dim, LH_NR);

    for (size_t from = 0; from < dim; from++) {
        for (size_t to = 0; to < padded; to++) {
            float *at = target + to / LH_NR * LH_NR * dim + from * LH_NR + to % LH_NR;

            *at = to >= dim ? 0 : transpose ? state[to * dim + from] : state[from * dim + to];
        }
    }
}

typedef struct {
    const LhStateApply *s;
    uint64_t sequence;
    uint32_t out_head, head;
    size_t dim, columns;
    float *state, *in, *out, *row;
} Apply;

static void
apply_tile(const Apply *w, uint64_t i, bool add)
{
    const LhStateApply *s = w->s;
    const uint32_t share = s->args->heads / s->in.heads;
    const LhPack pack = { .tensor = &s->in,
                          .sequence = w->sequence,
                          .first = i,
                          .count = lh_least(LH_TILE, s->rows - i),
                          .rows = s->rows,
                          .head = w->head / share,
                          .scale = 1,
                          .weights = s->weights,
                          .row = w->row };
    const LhProduct product = { .c = w->out,
                                .c_stride = w->columns,
                                .rows = pack.count,
                                .columns = lh_round(w->dim, LH_VL),
                                .depth = w->dim,
                                .a = w->in,
                                .a_panel = LH_MR * w->dim,
                                .b = w->state,
                                .b_panel = LH_NR * w->dim,
                                .add = add };

    LH_SIMD(pack_lanes)(&pack, w->in, LH_MR);
    LH_SIMD(product_panels)(&product);
}

static void
write_tile(const Apply *w, uint64_t i)
{
    const LhRows *out = &w->s->out;

    for (uint64_t r = 0; r < lh_least(LH_TILE, w->s->rows - i); r++) {
        void *target = lh_rows_at(out, w->sequence, i + r, w->out_head);
        float *sum = w->out + r * w->columns;

        if (w->s->load) {
            LH_SIMD(to_fp32)(w->row, target, out->storage, w->dim);
            for (size_t c = 0; c < w->dim; c++)
                sum[c] += w->row[c];
        }
        LH_SIMD(from_fp32)(target, out->storage, sum, w->dim);
    }
}

/*
 * Computes the rows of one head of the output. Heads that share it are summed in a tile. Their
 * states are packed again for each tile: its product costs as much as 64 such packings.
 */
static void
apply_head(Apply *w)
{
    const LhStateApply *s = w->s;
    const uint32_t share = s->args->heads / s->out.heads, first = w->out_head * share;
    const size_t matrix = w->dim * w->dim;

    for (uint64_t i = 0; i < s->rows; i += LH_TILE) {
        for (w->head = first; w->head < first + share; w->head++) {
            if (i == 0 || share > 1)
                pack_state(w->state, s->state + (w->sequence * s->args->heads + w->head) * matrix,
                           w->dim, s->transpose);
            apply_tile(w, i, w->head > first);
        }
        w->head = first;
        write_tile(w, i);
    }
}

void
LH_SIMD(state_apply)(const LhStateApply *s)
{
    LhScratch scratch = { s->scratch };
    Apply w = { .s = s, .dim = s->args->head_dim };

    w.columns = lh_round(w.dim, LH_NR);
    w.state = lh_take(&scratch, w.dim * w.columns);
    w.in = lh_take(&scratch, LH_TILE * w.dim);
    w.out = lh_take(&scratch, LH_TILE * w.columns);
    w.row = lh_take(&scratch, w.columns);
    for (w.sequence = 0; w.sequence < s->args->batch; w.sequence++) {
        for (w.out_head = 0; w.out_head < s->out.heads; w.out_head++)
            apply_head(&w);
    }
}

/* sum += x^T y over a tile of rows. */
static void
sum_tile(const LhStateSum *s, const LhPack *x, const LhPack *y, float *panels, float *sum)
{
    const size_t dim = s->args->head_dim, padded = lh_round(dim, LH_NR);
    float *x_rows = panels, *y_rows = panels + LH_TILE * padded;
    const LhProduct product = { .c = sum,
                                .c_stride = padded,
                                .rows = dim,
                                .columns = lh_round(dim, LH_VL),
                                .depth = x->count,
                                .a = x_rows,
                                .a_panel = LH_TILE * LH_MR,
                                .b = y_rows,
                                .b_panel = LH_TILE * LH_NR,
                                .add = true };

    LH_SIMD(pack_rows)(x, x_rows, LH_MR);
    LH_SIMD(pack_rows)(y, y_rows, LH_NR);
    LH_SIMD(product_panels)(&product);
}

static void
sum_head(const LhStateSum *s, uint64_t sequence, uint32_t head)
{
    const uint32_t heads = s->args->heads;
    const size_t dim = s->args->head_dim, padded = lh_round(dim, LH_NR);
    float *state = s->state + (sequence * heads + head) * dim * dim;
    LhScratch scratch = { s->scratch };
    float *sum = lh_take(&scratch, padded * padded);
    float *panels = lh_take(&scratch, 2 * LH_TILE * padded), *row = lh_take(&scratch, padded);
    LhPack x = { &s->x, sequence, 0, 0, s->rows, head / (heads / s->x.heads), 1, s->weights, row };
    LhPack y = { &s->y, sequence, 0, 0, s->rows, head / (heads / s->y.heads), 1, NULL, row };

    memset(sum, 0, padded * padded * sizeof(float));
    for (uint64_t i = 0; i < s->rows; i += LH_TILE) {
        x.first = y.first = i;
        x.count = y.count = lh_least(LH_TILE, s->rows - i);
        sum_tile(s, &x, &y, panels, sum);
    }
    for (size_t r = 0; r < dim; r++) {
        for (size_t c = 0; c < dim; c++) {
            const float before = s->keep == 0 ? 0 : (float)s->keep * state[r * dim + c];

            state[r * dim + c] = before + sum[r * padded + c];
        }
    }
}

void
LH_SIMD(state_sum)(const LhStateSum *s)
{
    for (uint64_t b = 0; b < s->args->batch; b++) {
        for (uint32_t head = 0; head < s->args->heads; head++)
            sum_head(s, b, head);
    }
}
