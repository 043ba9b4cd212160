/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a call's operands to those of operands.h, for the C files of this folder.
 */
#pragma once

#include "kernels/cpu/matrix.h"
#include "kernels/cpu/rows.h"
#include "kernels/cuda/operands.h"

/* Whether device code supports the element types of operands [0, count). */
bool lh_cuda_knows(const LhCall *call, unsigned count);

/* Whether fp32 numbers from @first on are aligned in every part of @view. */
bool lh_cuda_reads_fp32(const LhView *view, const unsigned char *first);

LhCudaTensor lh_cuda_tensor(LhRows rows);

/* Lines of @m: elements from @offset on, @pitch apart. @m must not be by heads. */
LhCudaLine lh_cuda_line(const LhMatrix *m, uint64_t pitch, uint64_t offset);

/* Converts a matrix in any layout. Returns false if it has more than 2^31 rows or columns. */
bool lh_cuda_matrix(LhCudaMatrix *to, const LhMatrix *m, uint64_t rows);

/* The same for an operand that is rows of @width elements. Returns false also for fp64. */
bool lh_cuda_flat_matrix(LhCudaMatrix *to, const LhCall *call, unsigned operand, uint64_t rows,
                         uint64_t width);

/* The rows of one head and sequence of a tensor, and the offsets of heads and sequences. */
typedef struct {
    uint64_t sequence, head;
} LhCudaOffsets;
bool lh_cuda_matrix_of_rows(LhCudaMatrix *to, const LhRows *rows, LhCudaOffsets *offsets);

/* Returns a digit of @size values. */
LhCudaDigit lh_cuda_digit(uint64_t size, uint64_t stride);
