/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion between rows outside attention and tensors by heads, one tensor at a time, with
 * rotation and silu.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/status.h"

#define LH_CUDA_FREQUENCIES                                                                        \
    256U /* rotated heads have at most twice as many elements as frequencies */

typedef struct {
    LhCudaMatrix from, to, forward; /* forward: rows of the forward pass, for silu's gradient */
    uint32_t from_column, to_column, forward_column; /* start of the tensor in a row */
    uint32_t rows, heads, dim;
    uint32_t batch, member_rows; /* member_rows: rows of a member, per sequence */
    uint64_t start, stride;      /* of positions */
    bool turns, back, silu, gradient;
    /* Circles per position, in 2^-64. */
    uint64_t frequencies[LH_CUDA_FREQUENCIES];
} LhCudaTurn;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_turn(const LhCudaTurn *t, void *stream);

#ifdef __cplusplus
}
#endif
