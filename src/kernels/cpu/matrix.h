/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operand of the layer outside attention as a matrix of rows: elements contiguous across all
 * parts, which may split a row; or a tensor of attention, whose rows are assembled from slices of
 * the heads, in the order of the rows outside (LhHeadsLayout).
 */
#pragma once

#include "kernels/call.h"
#include "kernels/cpu/convert.h"

#include <stdbool.h>

typedef struct {
    unsigned char *data;
    uint64_t part_bytes; /* distance of parts */
    uint64_t part_elements;
    uint64_t width; /* elements of a row */
    enum lh_storage storage;
    /* For a tensor of attention; otherwise members is 0. */
    uint64_t members, batch, slices;
    uint64_t member_rows; /* rows of a sequence in a part outside */
} LhMatrix;

/*
 * Sets @m to operand @operand of @call: @rows rows of @width over all its parts, each part with
 * ceil(elements / parts), so that the last ones may be partly filled. Returns false if a part is
 * too small.
 */
bool lh_matrix_flat(LhMatrix *m, const LhCall *call, unsigned operand, uint64_t rows,
                    uint64_t width);

/*
 * The same for a tensor of attention with @segments segments; the tensor is number @index of
 * @tensors consecutive ones in a part (k and v).
 */
typedef struct {
    LhHeadsLayout layout;
    uint64_t segments;
    unsigned tensors, index;
} LhByHeads;
bool lh_matrix_by_heads(LhMatrix *m, const LhCall *call, unsigned operand, const LhByHeads *heads,
                        uint64_t rows, uint64_t width);

/*
 * Returns the address of an element; @run is the number of contiguous elements of its row from
 * there.
 */
unsigned char *lh_matrix_at(const LhMatrix *m, uint64_t row, uint64_t column, uint64_t *run);

/* Convert elements [first, first + count) of a row. */
void lh_matrix_load(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count, float *to);
void lh_matrix_store(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count,
                     const float *from);
void lh_matrix_load64(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count, double *to);
void lh_matrix_store64(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count,
                       const double *from);

/* Read and write one element. */
double lh_matrix_get(const LhMatrix *m, uint64_t row, uint64_t column);
void lh_matrix_put(const LhMatrix *m, uint64_t row, uint64_t column, double x);

/* Returns a token of a matrix of tokens, 32 bits each. */
uint32_t lh_matrix_token(const LhMatrix *m, uint64_t row);
