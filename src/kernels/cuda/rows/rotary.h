/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows outside attention and tensors by heads, one tensor at a time, and what is done to the
 * elements on the way.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/status.h"

#define LH_CUDA_FREQUENCIES                                                                        \
    256U /* heads have at most twice as many elements, if they are turned                          \
          */

typedef struct {
    LhCudaMatrix from, to, forward; /* forward: rows of the forward pass, of silu's gradient */
    uint32_t from_column, to_column, forward_column; /* where the tensor begins in a row */
    uint32_t rows, heads, dim;
    uint32_t batch, member_rows; /* rows of a member, of each sequence */
    uint64_t start, stride;      /* of positions */
    bool turns, back, silu, gradient;
    /* Turns of a circle from one position to the next, in 2^-64. */
    uint64_t frequencies[LH_CUDA_FREQUENCIES];
} LhCudaTurn;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_turn(const LhCudaTurn *t, void *stream);

#ifdef __cplusplus
}
#endif
