/*
 * What the launchers of attention take. Plain C: seen by nvcc and by attention.c.
 */
#pragma once

#include "kernels/cuda/rows.h"
#include "kernels/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* delta = rowsum(do * o) of every query row. */
typedef struct {
    LhCudaRows dout, o, delta;
    uint32_t batch, heads, nq, dim;
    uint32_t storage; /* enum lh_storage of do and o */
} LhCudaDelta;

enum lh_status lh_cuda_delta(const LhCudaDelta *d, void *stream);

#ifdef __cplusplus
}
#endif
