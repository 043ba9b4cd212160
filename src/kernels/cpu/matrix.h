/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operand of the layer outside attention as a matrix of rows: elements one after the other
 * through all parts, wherever these cut them; or a tensor of attention, whose rows are taken
 * together from slices of the heads, in the order of the rows outside (LhHeadsLayout).
 */
#pragma once

#include "kernels/call.h"
#include "kernels/cpu/convert.h"

#include <stdbool.h>

typedef struct {
    unsigned char *data;
    uint64_t part_bytes; /* from one part to the next */
    uint64_t part_elements;
    uint64_t width; /* elements of a row */
    enum lh_storage storage;
    /* Of a tensor of attention; members is 0 of others. */
    uint64_t members, batch, slices;
    uint64_t member_rows; /* of a sequence in a part outside */
} LhMatrix;

/* Operand @operand of @call has @rows of @width in all of its parts, each as much as it must at the
 * least, so that the last ones may not be full; false if they cannot hold so much. */
bool lh_matrix_flat(LhMatrix *m, const LhCall *call, unsigned operand, uint64_t rows,
                    uint64_t width);

/* The same of a tensor of attention with @segments segments. Of @tensors one after the other in a
 * part (k and v), it is number @index. */
typedef struct {
    LhHeadsLayout layout;
    uint64_t segments;
    unsigned tensors, index;
} LhByHeads;
bool lh_matrix_by_heads(LhMatrix *m, const LhCall *call, unsigned operand, const LhByHeads *heads,
                        uint64_t rows, uint64_t width);

/* An element, and how many from it on, of its row, lie one after the other in memory. */
unsigned char *lh_matrix_at(const LhMatrix *m, uint64_t row, uint64_t column, uint64_t *run);

/* Elements [first, first + count) of a row, converted. */
void lh_matrix_load(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count, float *to);
void lh_matrix_store(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count,
                     const float *from);
void lh_matrix_load64(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count, double *to);
void lh_matrix_store64(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count,
                       const double *from);

/* One element. */
double lh_matrix_get(const LhMatrix *m, uint64_t row, uint64_t column);
void lh_matrix_put(const LhMatrix *m, uint64_t row, uint64_t column, double x);

/* One of a matrix of tokens, which are 32 bits each. */
uint32_t lh_matrix_token(const LhMatrix *m, uint64_t row);
