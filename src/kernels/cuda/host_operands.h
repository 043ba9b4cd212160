/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a call's operands to those of operands.h: for the C files of this folder.
 */
#pragma once

#include "kernels/cpu/matrix.h"
#include "kernels/cpu/rows.h"
#include "kernels/cuda/operands.h"

/* Whether device code knows the element type of operands [0, count). */
bool lh_cuda_knows(const LhCall *call, unsigned count);

/* Whether fp32 numbers that begin there in every part of @view are aligned. */
bool lh_cuda_reads_fp32(const LhView *view, const unsigned char *first);

LhCudaTensor lh_cuda_tensor(LhRows rows);

/* Elements [first, first + pitch ...) of lines of @m, which has no heads. */
LhCudaLine lh_cuda_line(const LhMatrix *m, uint64_t pitch, uint64_t offset);

/* Rows and columns wherever they lie; false if there are more than 2^31 of either. */
bool lh_cuda_matrix(LhCudaMatrix *to, const LhMatrix *m, uint64_t rows);

/* The same of an operand that is rows of @width elements; false, too, if it is in fp64. */
bool lh_cuda_flat_matrix(LhCudaMatrix *to, const LhCall *call, unsigned operand, uint64_t rows,
                         uint64_t width);

/* The rows of one head and sequence of a tensor; what is a head's, and a sequence's, offset. */
typedef struct {
    uint64_t sequence, head;
} LhCudaOffsets;
bool lh_cuda_matrix_of_rows(LhCudaMatrix *to, const LhRows *rows, LhCudaOffsets *offsets);

/* A digit of so many values. */
LhCudaDigit lh_cuda_digit(uint64_t size, uint64_t stride);
