/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stable order of numbers, the same in every run: by digits of 8 bits, the least one first.
 */
#pragma once

#include "kernels/status.h"

#include <stdint.h>

#define LH_CUDA_SORT_BINS 256U  /* values of a digit */
#define LH_CUDA_SORT_CHUNK 256U /* numbers that a block takes */

/* All of them in the device's memory. */
typedef struct {
    const uint32_t *keys;
    uint32_t *order;  /* the result: which number comes first, second, ... */
    uint32_t *spare;  /* as many */
    uint32_t *ranks;  /* as many */
    uint32_t *counts; /* LH_CUDA_SORT_BINS for each chunk and once more */
    uint32_t count;
    uint32_t most; /* no key is larger */
} LhCudaSort;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_sort(const LhCudaSort *o, void *stream);

#ifdef __cplusplus
}
#endif
