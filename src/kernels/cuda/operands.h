/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of a call as device code sees them: plain C, for nvcc and for the C files that fill them
 * in from an LhCall (host_operands.c). Bytes of an element follow from the storage.
 */
#pragma once

#include "kernels/call.h"

#include <stdbool.h>
#include <stdint.h>

/* Elements that are taken at a time where memory allows: 16 bytes of the 16-bit types. */
#define LH_CUDA_GROUP 8

/* A tensor of attention, [B][part_rows][heads][dim] a part: an LhRows. No data: there is none. */
typedef struct {
    unsigned char *data;
    uint64_t part_bytes;
    uint64_t part_rows;
    uint32_t heads, dim;
    uint32_t storage; /* enum lh_storage */
    bool grouped;     /* every row is whole groups of elements, which are aligned */
} LhCudaTensor;

/*
 * Elements one after the other through parts of `cut` each, seen as lines: line l begins at element
 * l * pitch + offset. Without data, it is left out.
 */
typedef struct {
    unsigned char *data;
    uint64_t part_bytes;
    uint64_t cut, pitch, offset;
    uint32_t parts;
    uint32_t storage;
    bool reversed; /* the parts are taken from the last to the first */
    bool grouped;  /* as above, of every line; its last group may be short */
} LhCudaLine;

/* Of a number below 2^31 in mixed radix: what it is divided by, as a multiplication and a shift,
 * and the bytes from one value of the digit to the next. */
typedef struct {
    uint32_t size, factor, shift;
    int64_t stride;
} LhCudaDigit;

#define LH_CUDA_ROW_DIGITS 3

/*
 * A matrix: rows and columns each find their place digit by digit, the least one first, and what is
 * left of a row goes by `rest`; the least digit of a column goes by elements. Or, with `cut`,
 * elements lie one after the other through parts, which cut them anywhere.
 */
typedef struct {
    unsigned char *data;
    LhCudaDigit rows[LH_CUDA_ROW_DIGITS];
    int64_t rest;
    LhCudaDigit
        column; /* its size: elements that lie together; its stride: from these to the next */
    uint64_t width, cut, part_bytes;
    uint32_t storage;
    bool grouped; /* groups of columns lie together and are aligned */
} LhCudaMatrix;
