/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/gemm.h"

static uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t
block(uint64_t size, uint64_t most, uint64_t multiple)
{
    const uint64_t rounded = (size + multiple - 1) / multiple * multiple;

    return rounded < most ? rounded : most;
}

/* Bytes of the blocks of a, b and c, and of a line of a or b. */
static uint64_t
fast_bytes(uint64_t rows, uint64_t columns, uint64_t depth)
{
    const uint64_t r = block(rows, LH_GEMM_ROWS, LH_GEMM_PANEL_ROWS);
    const uint64_t c = block(columns, LH_GEMM_COLUMNS, LH_GEMM_PANEL_COLUMNS);
    const uint64_t d = block(depth, LH_GEMM_DEPTH, LH_SCRATCH_ALIGN / sizeof(float));

    return (r * d + d * c + r * c + larger(larger(r, c), d)) * sizeof(float);
}

uint64_t
lh_gemm_scratch_bytes(uint64_t rows, uint64_t columns, uint64_t depth)
{
    return larger(fast_bytes(rows, columns, depth),
                  (columns + depth + larger(columns, depth)) * sizeof(double));
}

/* Reads row @row of a, transposed or not. */
static void
load_a(const LhGemm *g, uint64_t row, double *a)
{
    if (!g->a_transposed) {
        lh_matrix_load64(g->a, g->a_row + row, 0, g->depth, a);
        return;
    }
    for (uint64_t l = 0; l < g->depth; l++)
        a[l] = lh_matrix_get(g->a, g->a_row + l, row);
}

static void
add_rows_of_b(const LhGemm *g, const double *a, double *sums, double *line)
{
    for (uint64_t j = 0; j < g->columns; j++)
        sums[j] = 0;
    for (uint64_t l = 0; l < g->depth; l++) {
        lh_matrix_load64(g->b, g->b_row + l, 0, g->columns, line);
        for (uint64_t j = 0; j < g->columns; j++)
            sums[j] += a[l] * line[j];
    }
}

static void
multiply_rows_of_b(const LhGemm *g, const double *a, double *sums, double *line)
{
    for (uint64_t j = 0; j < g->columns; j++) {
        lh_matrix_load64(g->b, g->b_row + j, 0, g->depth, line);
        sums[j] = 0;
        for (uint64_t l = 0; l < g->depth; l++)
            sums[j] += a[l] * line[l];
    }
}

void
lh_gemm_reference(const LhGemm *g)
{
    double *sums = g->scratch, *a = sums + g->columns, *line = a + g->depth;

    for (uint64_t i = 0; i < g->rows; i++) {
        load_a(g, i, a);
        (g->b_transposed ? multiply_rows_of_b : add_rows_of_b)(g, a, sums, line);
        if (g->add) {
            lh_matrix_load64(g->c, g->c_row + i, 0, g->columns, line);
            for (uint64_t j = 0; j < g->columns; j++)
                sums[j] += line[j];
        }
        lh_matrix_store64(g->c, g->c_row + i, 0, g->columns, sums);
    }
}
