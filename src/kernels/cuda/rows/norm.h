/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over rows or columns: norms, the loss, the norm of gradients. Sums have a fixed order: the
 * number of chunks of rows depends only on the number of rows.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/status.h"

#define LH_CUDA_CHUNKS 128U       /* maximum chunks of rows in a sum over rows */
#define LH_CUDA_NORM_BLOCKS 1024U /* of elements, for the norm of gradients */

typedef struct {
    LhCudaMatrix x, w, y, dx, dw; /* y: for the gradient, dy */
    float *stats;                 /* mean and scale of each row; for the gradient */
    float *partial;               /* LH_CUDA_CHUNKS partial sums for the gradients of w and bias */
    uint32_t rows, width, groups; /* groups of 4 numbers per row of partial sums */
    float epsilon;
    bool centred;      /* layer_norm: with mean and bias, which follows w */
    bool adds, starts; /* adds: to dx; starts: dw is overwritten */
    bool frozen;       /* without dw */
} LhCudaNorm;

typedef struct {
    LhCudaMatrix logits, tokens, numbers, dlogits, value;
    float *losses; /* per row */
    uint64_t first, vocabulary;
    uint32_t rows, width, columns, members; /* columns: those of width that are tokens */
    float weight;                           /* of a row in the mean */
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
