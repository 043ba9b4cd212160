/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA versions of kernels/norm.c and loss.c, and of grad_norm: converts calls to launcher
 * arguments.
 */
#include "kernels/cuda/rows/norm.h"

#include "kernels/cuda/host_operands.h"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/table.h"
#include "kernels/layer.h"

#define RUNS(word, scratch)                                                                        \
    const LhCudaKernel lh_cuda_kernel_##word = { .run = word, .scratch_bytes = scratch };

/* ---- norms ---- */

enum { X, W, Y, DX, DW };

static void
take_norm(const LhKernelArgs *a, LhCudaScratch *s, LhCudaNorm *n)
{
    n->stats = lh_cuda_take(s, 2 * a->rows.rows * sizeof(float));
    n->groups = ((uint32_t)a->rows.width + 3) / 4;
    n->partial = lh_cuda_take(s, 2 * LH_CUDA_CHUNKS * (uint64_t)n->groups * 4 * sizeof(float));
}

static uint64_t
norm_scratch(const LhKernelArgs *a)
{
    LhCudaScratch s = { .base = NULL };
    LhCudaNorm n;

    take_norm(a, &s, &n);
    return s.used;
}

typedef enum { FORWARD, BACKWARD, BACKWARD_FROZEN } Pass;

static enum lh_status
run(const LhCall *call, bool centred, Pass pass, void *stream)
{
    const LhKernelArgs *a = call->args;
    const uint64_t rows = a->rows.rows, width = a->rows.width,
                   weights = centred ? 2 * width : width;
    LhCudaScratch scratch = { .base = call->scratch };
    LhCudaNorm n = { .rows = (uint32_t)rows,
                     .width = (uint32_t)width,
                     .epsilon = (float)a->rows.epsilon,
                     .centred = centred,
                     .frozen = pass == BACKWARD_FROZEN,
                     .adds = a->rows.adds,
                     .starts = a->first };

    if (!lh_cuda_flat_matrix(&n.x, call, X, rows, width) ||
        !lh_cuda_flat_matrix(&n.w, call, W, 1, weights) ||
        !lh_cuda_flat_matrix(&n.y, call, Y, rows, width))
        return LH_STATUS_UNSUPPORTED;
    if (pass == FORWARD)
        return lh_cuda_norm(&n, stream);
    if (!lh_cuda_flat_matrix(&n.dx, call, DX, rows, width) ||
        (!n.frozen && !lh_cuda_flat_matrix(&n.dw, call, DW, 1, weights)))
        return LH_STATUS_UNSUPPORTED;
    take_norm(a, &scratch, &n);
    return lh_cuda_norm_bwd(&n, stream);
}

#define NORM(word, centred, pass, scratch)                                                         \
    static enum lh_status word(const LhCall *call, void *stream)                                   \
    {                                                                                              \
        return run(call, centred, pass, stream);                                                   \
    }                                                                                              \
    RUNS(word, scratch)

NORM(rms_norm, false, FORWARD, NULL)
NORM(layer_norm, true, FORWARD, NULL)
NORM(rms_norm_bwd, false, BACKWARD, norm_scratch)
NORM(layer_norm_bwd, true, BACKWARD, norm_scratch)
NORM(rms_norm_dgrad, false, BACKWARD_FROZEN, norm_scratch)
NORM(layer_norm_dgrad, true, BACKWARD_FROZEN, norm_scratch)

/* ---- the loss ---- */

static bool
find_loss(const LhCall *call, LhCudaLoss *l)
{
    const LhKernelArgs *a = call->args;
    const uint64_t left =
        a->rows.first >= a->rows.vocabulary ? 0 : a->rows.vocabulary - a->rows.first;

    *l = (LhCudaLoss){ .first = a->rows.first,
                       .vocabulary = a->rows.vocabulary,
                       .rows = (uint32_t)a->rows.rows,
                       .width = (uint32_t)a->rows.width,
                       .columns = (uint32_t)(left < a->rows.width ? left : a->rows.width),
                       .members = (uint32_t)lh_loss_members(a),
                       .starts = a->first };
    return lh_cuda_flat_matrix(&l->logits, call, 0, a->rows.rows, a->rows.width) &&
           lh_cuda_flat_matrix(&l->tokens, call, 1, a->rows.rows, 1);
}

static enum lh_status
loss_stats(const LhCall *call, void *stream)
{
    LhCudaLoss l;

    return find_loss(call, &l) &&
                   lh_cuda_flat_matrix(&l.numbers, call, 2, call->args->rows.rows, LH_LOSS_STATS)
               ? lh_cuda_loss_stats(&l, stream)
               : LH_STATUS_UNSUPPORTED;
}

static uint64_t
loss_scratch(const LhKernelArgs *a)
{
    return a->rows.rows * sizeof(float);
}

static enum lh_status
loss(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const uint64_t rows = a->rows.rows;
    LhCudaLoss l;

    if (a->rows.tokens == 0 || lh_loss_members(a) == 0 || !find_loss(call, &l) ||
        !lh_cuda_flat_matrix(&l.numbers, call, 2, lh_loss_members(a) * rows, LH_LOSS_STATS) ||
        !lh_cuda_flat_matrix(&l.dlogits, call, 3, rows, a->rows.width) ||
        !lh_cuda_flat_matrix(&l.value, call, 4, 1, 1))
        return LH_STATUS_UNSUPPORTED;
    l.losses = call->scratch;
    l.weight = (float)(1 / (double)a->rows.tokens);
    return lh_cuda_loss(&l, stream);
}

RUNS(loss_stats, NULL)
RUNS(loss, loss_scratch)

/* ---- the norm of gradients ---- */

static uint64_t
grad_norm_scratch(const LhKernelArgs *a)
{
    (void)a;
    return LH_CUDA_NORM_BLOCKS * sizeof(float);
}

static enum lh_status
grad_norm(const LhCall *call, void *stream)
{
    const uint64_t count = call->args->optimizer.count;
    LhCudaGradNorm g = { .partial = call->scratch,
                         .norm = (float *)(void *)call->operands[1].data,
                         .count = count,
                         .starts = call->args->first };
    LhMatrix m;

    if (call->operands[0].storage == LH_STORAGE_FP64 ||
        call->operands[1].storage != LH_STORAGE_FP32 || !lh_matrix_flat(&m, call, 0, 1, count))
        return LH_STATUS_UNSUPPORTED;
    g.gradient = lh_cuda_line(&m, 0, 0);
    return lh_cuda_grad_norm(&g, stream);
}

RUNS(grad_norm, grad_norm_scratch)
