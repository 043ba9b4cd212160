/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takes sums over rows or columns: norms, the loss, the norm of gradients. Sums have a fixed
 * order: that of the rows cut into as many chunks as a number says that depends on their count
 * alone.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/status.h"

#define LH_CUDA_CHUNKS 128U       /* of rows that a sum over them is cut into, at the most */
#define LH_CUDA_NORM_BLOCKS 1024U /* of elements, for the norm of gradients */

typedef struct {
    LhCudaMatrix x, w, y, dx, dw; /* y: dy of the gradient */
    float *stats;                 /* mean and scale of each row; of the gradient */
    float *partial;               /* LH_CUDA_CHUNKS of what x gives to w's gradient, and of dy */
    uint32_t rows, width, groups; /* groups: of 4 numbers, of a row of either in partial */
    float epsilon;
    bool centred;      /* with mean, and a bias behind w */
    bool adds, starts; /* to dx; dw */
} LhCudaNorm;

typedef struct {
    LhCudaMatrix logits, tokens, numbers, dlogits, value;
    float *losses; /* of each row */
    uint64_t first, vocabulary;
    uint32_t rows, width, columns, members; /* columns: those of the width that are tokens */
    float weight;                           /* of a row */
    bool starts;
} LhCudaLoss;

typedef struct {
    LhCudaLine gradient;
    float *partial; /* LH_CUDA_NORM_BLOCKS */
    float *norm;
    uint64_t count;
    bool starts;
} LhCudaGradNorm;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_norm(const LhCudaNorm *n, void *stream);
enum lh_status lh_cuda_norm_bwd(const LhCudaNorm *n, void *stream);
enum lh_status lh_cuda_loss_stats(const LhCudaLoss *l, void *stream);
enum lh_status lh_cuda_loss(const LhCudaLoss *l, void *stream);
enum lh_status lh_cuda_grad_norm(const LhCudaGradNorm *g, void *stream);

#ifdef __cplusplus
}
#endif
