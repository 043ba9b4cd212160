/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax of scores in memory, and its gradient, row by row. Rows are those of all sequences,
 * queries and heads, in this order.
 */
#pragma once

#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/operands.h"
#include "kernels/status.h"

typedef struct {
    LhCudaMatrix scores, probs, dscores;
    LhCudaTensor lse;
    LhCudaMask mask;
    uint64_t queries; /* of a sequence */
    uint32_t rows, heads, keys;
    float scale;
} LhCudaSoftmax;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_softmax(const LhCudaSoftmax *s, void *stream);
/*
 * dscores = scale probs (scores - the sum of probs scores), where `scores` holds the gradient of
 * probs.
 */
enum lh_status lh_cuda_softmax_bwd(const LhCudaSoftmax *s, void *stream);

#ifdef __cplusplus
}
#endif
