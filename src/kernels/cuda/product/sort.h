/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable radix sort of numbers, deterministic: by digits of 8 bits, the least significant first.
 */
#pragma once

#include "kernels/status.h"

#include <stdint.h>

#define LH_CUDA_SORT_BINS 256U  /* values of a digit */
#define LH_CUDA_SORT_CHUNK 256U /* numbers per block */

/* All pointers are device memory. */
typedef struct {
    const uint32_t *keys;
    uint32_t *order;  /* the result: index of the first number, the second, ... */
    uint32_t *spare;  /* as many */
    uint32_t *ranks;  /* as many */
    uint32_t *counts; /* LH_CUDA_SORT_BINS per chunk and once more */
    uint32_t count;
    uint32_t most; /* maximum key */
} LhCudaSort;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_sort(const LhCudaSort *o, void *stream);

#ifdef __cplusplus
}
#endif
