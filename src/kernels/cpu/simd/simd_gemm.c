/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast matrix product outside attention. Blocks of both factors, in any layout, are converted and
 * packed into panels; a block of the result stays in fp32 until its sums are complete. Sums are
 * split at fixed places, so results do not depend on blocks and parts.
 */
#include "kernels/cpu/simd/simd.h"

/* Source of a factor's block: lanes of a panel, and steps of depth. */
typedef struct {
    const LhMatrix *from;
    uint64_t lane, lanes, step, steps; /* first and number of each */
    bool rows_are_steps;
    size_t width; /* of a panel */
    float *line;
} Packing;

static float *
panel_of(const Packing *p, float *target, size_t lane)
{
    return target + lane / p->width * p->width * p->steps + lane % p->width;
}

/* Packs rows as lanes: each row fills one lane, step by step. */
static void
pack_lanes_of_rows(const Packing *p, float *target)
{
    for (size_t lane = 0; lane < lh_round(p->lanes, p->width); lane++) {
        float *at = panel_of(p, target, lane);

        if (lane < p->lanes)
            lh_matrix_load(p->from, p->lane + lane, p->step, p->steps, p->line);
        for (size_t step = 0; step < p->steps; step++)
            at[step * p->width] = lane < p->lanes ? p->line[step] : 0;
    }
}

/* Packs rows as steps: each row is divided among all panels. */
static void
pack_steps_of_rows(const Packing *p, float *target)
{
    const size_t lanes = lh_round(p->lanes, p->width);

    memset(p->line, 0, lanes * sizeof(float));
    for (size_t step = 0; step < p->steps; step++) {
        lh_matrix_load(p->from, p->step + step, p->lane, p->lanes, p->line);
        for (size_t lane = 0; lane < lanes; lane += p->width)
            memcpy(panel_of(p, target, lane) + step * p->width, p->line + lane,
                   p->width * sizeof(float));
    }
}

static void
pack(const Packing *p, float *target)
{
    if (p->rows_are_steps)
        pack_steps_of_rows(p, target);
    else
        pack_lanes_of_rows(p, target);
}

/* A block of c, and memory for the factors' blocks and lines. */
typedef struct {
    const LhGemm *g;
    uint64_t row, rows, column, columns;
    float *a, *b, *c, *line;
    size_t stride; /* of c */
} Block;

/* Packings of a block's factors: the operand's first row offsets the lanes or the steps. */
static Packing
packing_of_a(const Block *x, uint64_t step, uint64_t steps)
{
    const LhGemm *g = x->g;

    return (Packing){ .from = g->a,
                      .lane = x->row + (g->a_transposed ? 0 : g->a_row),
                      .lanes = x->rows,
                      .step = step + (g->a_transposed ? g->a_row : 0),
                      .steps = steps,
                      .rows_are_steps = g->a_transposed,
                      .width = LH_MR,
                      .line = x->line };
}

static Packing
packing_of_b(const Block *x, uint64_t step, uint64_t steps)
{
    const LhGemm *g = x->g;

    return (Packing){ .from = g->b,
                      .lane = x->column + (g->b_transposed ? g->b_row : 0),
                      .lanes = x->columns,
                      .step = step + (g->b_transposed ? 0 : g->b_row),
                      .steps = steps,
                      .rows_are_steps = !g->b_transposed,
                      .width = LH_NR,
                      .line = x->line };
}

static void
multiply_depth(const Block *x, uint64_t step, uint64_t steps)
{
    const Packing a = packing_of_a(x, step, steps), b = packing_of_b(x, step, steps);
    const LhProduct p = { .c = x->c,
                          .c_stride = x->stride,
                          .rows = x->rows,
                          .columns = x->columns,
                          .depth = steps,
                          .a = x->a,
                          .a_panel = LH_MR * steps,
                          .b = x->b,
                          .b_panel = LH_NR * steps,
                          .add = step > 0 };

    pack(&a, x->a);
    pack(&b, x->b);
    LH_SIMD(product_panels)(&p);
}

static void
store_block(const Block *x)
{
    const LhGemm *g = x->g;

    for (uint64_t i = 0; i < x->rows; i++) {
        float *sums = x->c + i * x->stride;
        const uint64_t row = g->c_row + x->row + i;

        if (g->add) {
            lh_matrix_load(g->c, row, x->column, x->columns, x->line);
            for (uint64_t j = 0; j < x->columns; j++)
                sums[j] += x->line[j];
        }
        lh_matrix_store(g->c, row, x->column, x->columns, sums);
    }
}

static void
multiply_block(const Block *x)
{
    for (uint64_t step = 0; step < x->g->depth; step += LH_GEMM_DEPTH)
        multiply_depth(x, step, lh_least(LH_GEMM_DEPTH, x->g->depth - step));
    store_block(x);
}

void
LH_SIMD(gemm)(const LhGemm *g)
{
    const size_t rows = lh_least(LH_GEMM_ROWS, lh_round(g->rows, LH_GEMM_PANEL_ROWS));
    const size_t columns = lh_least(LH_GEMM_COLUMNS, lh_round(g->columns, LH_GEMM_PANEL_COLUMNS));
    const size_t depth = lh_least(LH_GEMM_DEPTH, lh_round(g->depth, 16));
    LhScratch s = { g->scratch };
    Block x = { .g = g, .stride = columns };

    x.a = lh_take(&s, rows * depth);
    x.b = lh_take(&s, depth * columns);
    x.c = lh_take(&s, rows * columns);
    x.line = s.next;
    for (x.column = 0; x.column < g->columns; x.column += columns) {
        x.columns = lh_least(columns, g->columns - x.column);
        for (x.row = 0; x.row < g->rows; x.row += rows) {
            x.rows = lh_least(rows, g->rows - x.row);
            multiply_block(&x);
        }
    }
}
