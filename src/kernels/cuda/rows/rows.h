/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor of an operand as kernels on a GPU see it. Plain C: nvcc reads it, too.
 */
#pragma once

#include <stdint.h>

/* [batch][part_rows][heads][dim] in each part; dim and element are the kernel's to know. */
typedef struct {
    unsigned char *data; /* NULL: the call has no such tensor */
    uint64_t part_bytes; /* from one part to the next */
    uint32_t part_rows;
    uint32_t heads;
} LhCudaRows;
