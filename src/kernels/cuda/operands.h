/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of a call as device code sees them. Plain C, for nvcc and for the C files that fill them
 * in from an LhCall (host_operands.c). The storage determines the bytes of an element.
 */
#pragma once

#include "kernels/call.h"

#include <stdbool.h>
#include <stdint.h>

/* Elements processed at a time where alignment allows: 16 bytes of the 16-bit types. */
#define LH_CUDA_GROUP 8

/* A tensor of attention, [B][part_rows][heads][dim] per part, like LhRows. NULL data: absent. */
typedef struct {
    unsigned char *data;
    uint64_t part_bytes;
    uint64_t part_rows;
    uint32_t heads, dim;
    uint32_t storage; /* enum lh_storage */
    bool grouped;     /* rows consist of whole, aligned groups of elements */
} LhCudaTensor;

/*
 * Contiguous elements in parts of `cut` each, seen as lines: line l begins at element l * pitch +
 * offset. NULL data: absent.
 */
typedef struct {
    unsigned char *data;
    uint64_t part_bytes;
    uint64_t cut, pitch, offset;
    uint32_t parts;
    uint32_t storage;
    bool reversed; /* the parts are in reverse order */
    bool grouped;  /* as above, for every line; its last group may be short */
} LhCudaLine;

/*
 * Digit of a number below 2^31 in mixed radix: its divisor as multiplication and shift, and the
 * distance in bytes of consecutive values.
 */
typedef struct {
    uint32_t size, factor, shift;
    int64_t stride;
} LhCudaDigit;

#define LH_CUDA_ROW_DIGITS 3

/*
 * A matrix. Rows and columns are located digit by digit, the least significant first; the quotient
 * left of a row has the stride `rest`, and a column's least digit counts elements. Or, with `cut`,
 * elements are contiguous across parts, which may split anywhere.
 */
typedef struct {
    unsigned char *data;
    LhCudaDigit rows[LH_CUDA_ROW_DIGITS];
    int64_t rest;
    LhCudaDigit column; /* size: contiguous elements; stride: distance of such runs */
    uint64_t width, cut, part_bytes;
    uint32_t storage;
    bool grouped; /* groups of columns are contiguous and aligned */
} LhCudaMatrix;
