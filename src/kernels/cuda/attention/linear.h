/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan over the states of the tiles of linear attention: replaces each tile's own contribution by
 * the decayed sum of those before it (or after it).
 */
#pragma once

#include "kernels/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    float *states; /* [stacks][tiles][elements] */
    uint64_t stacks, elements;
    uint32_t tiles;
    float factor; /* from one tile to the next */
    bool backward;
} LhCudaScan;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_scan(const LhCudaScan *s, void *stream);

#ifdef __cplusplus
}
#endif
