/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor of an operand for CUDA kernels. Plain C, also for nvcc.
 */
#pragma once

#include <stdint.h>

/* [batch][part_rows][heads][dim] in each part; the kernel knows dim and element type. */
typedef struct {
    unsigned char *data; /* NULL: the call has no such tensor */
    uint64_t part_bytes; /* from one part to the next */
    uint32_t part_rows;
    uint32_t heads;
} LhCudaRows;
