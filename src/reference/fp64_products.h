/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of fp64 matrices, one block of the result at a time, as many rows and vectors as fit in
 * registers. The columns of the right matrix for a block are packed in a panel, which stays in
 * cache.
 */
#pragma once

#include "reference/fp64_vectors.h"

/* C[rows][columns] (+)= A B. The element (i, k) of A is a[i * a_row + k * a_depth]. */
typedef struct {
    double *c;
    const double *a, *b;
    /*
     * Packed columns of B of a block, row by row; they stay in cache. @packed: b is not used; the
     * panels of all blocks are already packed, one after the other.
     */
    double *panel;
    bool packed;
    size_t c_stride, b_stride;
    size_t rows, columns, depth; /* rows are rounded up to LH_FP64_ROWS; columns are a multiple
                                    of PAD */
    bool add;
    const double *next; /* data needed after the product, prefetched meanwhile */
    size_t next_count;
} LhFp64Product;

/* Computes LH_FP64_ROWS rows and @vectors vectors of C from a panel. */
LH_FP64_INLINE void
lh_fp64_block(const LhFp64Product *p, size_t row, size_t column, size_t a_row, size_t a_depth,
              unsigned vectors)
{
    const double *a = p->a + row * a_row, *b = p->panel;
    double *c = p->c + row * p->c_stride + column;
    const size_t depth = p->depth;
    LhFp64Vector sum[LH_FP64_ROWS][LH_FP64_VECTORS];

    LH_FP64_UNROLL
    for (unsigned i = 0; i < LH_FP64_ROWS; i++) {
        LH_FP64_UNROLL
        for (unsigned v = 0; v < vectors; v++)
            sum[i][v] = (LhFp64Vector){ 0 };
    }
    for (size_t k = 0; k < depth; k++) {
        LhFp64Vector x[LH_FP64_VECTORS];

        LH_FP64_UNROLL
        for (unsigned v = 0; v < vectors; v++)
            x[v] = lh_fp64_load(b + (k * vectors + v) * LH_FP64_LANES);
        LH_FP64_UNROLL
        for (unsigned i = 0; i < LH_FP64_ROWS; i++) {
            const LhFp64Vector weight = lh_fp64_splat(a[i * a_row + k * a_depth]);

            LH_FP64_UNROLL
            for (unsigned v = 0; v < vectors; v++)
                sum[i][v] += weight * x[v];
        }
    }
    LH_FP64_UNROLL
    for (unsigned i = 0; i < LH_FP64_ROWS; i++) {
        LH_FP64_UNROLL
        for (unsigned v = 0; v < vectors; v++) {
            double *at = c + i * p->c_stride + v * LH_FP64_LANES;

            lh_fp64_store(at, p->add ? sum[i][v] + lh_fp64_load(at) : sum[i][v]);
        }
    }
}

/*
 * Returns the vectors of the next block when @columns are left: as many as registers allow,
 * avoiding a last block of one vector.
 */
LH_FP64_INLINE unsigned
lh_fp64_vectors(size_t columns)
{
    if (columns >= (LH_FP64_VECTORS + 2) * LH_FP64_LANES ||
        columns == LH_FP64_VECTORS * LH_FP64_LANES)
        return LH_FP64_VECTORS;
    return columns >= 2 * LH_FP64_LANES ? 2 : 1;
}

/* Prefetches a share of the next data, proportional to the block's share of the product. */
LH_FP64_INLINE void
lh_fp64_fetch_next(const LhFp64Product *p, size_t row, size_t column, unsigned vectors)
{
    const size_t width = vectors * LH_FP64_LANES, all = p->rows * p->columns;
    const size_t done = column * p->rows + row * width;
    const size_t end = p->next_count *
                       (done + LH_FP64_ROWS * width < all ? done + LH_FP64_ROWS * width : all) /
                       all;

    for (size_t i = p->next_count * done / all; i < end; i += LH_FP64_LINE)
        __builtin_prefetch(p->next + i, 0, 2);
}

/* Computes all rows of @vectors vectors of C. */
LH_FP64_INLINE void
lh_fp64_column(LhFp64Product p, size_t column, size_t a_row, size_t a_depth, unsigned vectors)
{
    if (p.packed) {
        p.panel += column * p.depth;
    } else {
        for (size_t k = 0; k < p.depth; k++) {
            LH_FP64_UNROLL
            for (unsigned v = 0; v < vectors; v++)
                lh_fp64_store(p.panel + (k * vectors + v) * LH_FP64_LANES,
                              lh_fp64_load(p.b + k * p.b_stride + column + v * LH_FP64_LANES));
        }
    }
    for (size_t row = 0; row < p.rows; row += LH_FP64_ROWS) {
        if (p.next != NULL)
            lh_fp64_fetch_next(&p, row, column, vectors);
        lh_fp64_block(&p, row, column, a_row, a_depth, vectors);
    }
}

LH_FP64_INLINE void
lh_fp64_product(const LhFp64Product *p, size_t a_row, size_t a_depth)
{
    unsigned vectors;

    for (size_t column = 0; column < p->columns; column += vectors * LH_FP64_LANES) {
        vectors = lh_fp64_vectors(p->columns - column);
        if (vectors == LH_FP64_VECTORS)
            lh_fp64_column(*p, column, a_row, a_depth, LH_FP64_VECTORS);
        else if (vectors == 2)
            lh_fp64_column(*p, column, a_row, a_depth, 2);
        else
            lh_fp64_column(*p, column, a_row, a_depth, 1);
    }
}
