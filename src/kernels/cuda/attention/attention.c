/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA versions of kernels/attention.c: converts calls to launcher arguments. */
#include "kernels/cuda/attention/attention.h"

#include "kernels/cuda/host.h"
#include "kernels/cuda/table.h"
#include "model/attention.h"

#include <stddef.h>

#define GRID_MAX 65535U /* of its second and third dimension */
#define DIM_MAX 256U

/* ---- supported calls ---- */

/* Whether all rows of an operand are aligned to @bytes, its elements to their size. */
static bool
aligned(const LhView *view, LhRows rows, uint64_t bytes)
{
    const uint64_t row_bytes = rows.dim * (uint64_t)lh_storage_bytes(rows.storage);

    return (uintptr_t)rows.data % bytes == 0 && row_bytes % bytes == 0 &&
           (view->parts == 1 || view->part_bytes % bytes == 0);
}

/* Statistics after 16-bit elements may be misaligned for fp32. */
static bool
can_hold_stat(const LhView *view, LhCudaRows stat)
{
    return (uintptr_t)stat.data % sizeof(float) == 0 &&
           (view->parts == 1 || view->part_bytes % sizeof(float) == 0);
}

static bool
is_narrow(enum lh_storage storage)
{
    return storage == LH_STORAGE_BF16 || storage == LH_STORAGE_FP16;
}

/*
 * Fills in the common part of a call; @inputs is the bit set of operands of the activations' type.
 */
static bool
prepare(const LhCall *call, unsigned inputs, unsigned key_operands, unsigned operands_count,
        LhCudaAttention *a)
{
    const LhKernelArgs *args = call->args;
    const double scale = lh_attention_scale(args->scale, args->head_dim);

    *a = (LhCudaAttention){ .batch = args->batch,
                            .heads = args->heads,
                            .groups = args->groups,
                            .nq = (uint32_t)args->nq,
                            .nk = (uint32_t)args->nk,
                            .dim = args->head_dim,
                            .scale = (float)scale,
                            .storage = call->operands[0].storage,
                            .chunks = true };
    if (!lh_parts_divide(call, operands_count, key_operands) || !(scale > 0) ||
        args->head_dim > DIM_MAX || args->heads > GRID_MAX || args->batch > GRID_MAX / 2)
        return false;
    if (!is_narrow(a->storage) && a->storage != LH_STORAGE_FP32)
        return false;
    for (unsigned i = 0; i < operands_count; i++) {
        const bool of_keys = (key_operands >> i & 1) != 0;
        const LhView *view = &call->operands[i];

        if ((inputs >> i & 1) == 0)
            continue;
        if (view->storage != a->storage)
            return false;
        a->chunks &= aligned(view, of_keys ? lh_rows_k(call, i) : lh_rows_q(call, i), 16);
        a->chunks &= !of_keys || aligned(view, lh_rows_v(call, i), 16);
    }
    return true;
}

/*
 * Sets @target to an output tensor, @rows of an operand. Returns false if its type is neither the
 * activations' nor fp32.
 */
static bool
result(const LhCall *call, const LhCudaAttention *a, unsigned operand, LhRows rows,
       LhCudaResult *target)
{
    const LhView *view = &call->operands[operand];

    *target = (LhCudaResult){ .rows = lh_cuda_rows(rows),
                              .storage = view->storage,
                              .chunks = aligned(view, rows, 4 * lh_storage_bytes(rows.storage)) };
    return view->storage == LH_STORAGE_FP32 || view->storage == a->storage;
}

static enum lh_status
mask_of(const LhCall *call, unsigned q, unsigned kv, void *stream, LhCudaAttention *a)
{
    return lh_cuda_mask(call->args, call->args->nq / call->operands[q].parts,
                        call->args->nk / call->operands[kv].parts, call->scratch, stream, &a->mask);
}

/* ---- forward ---- */

static enum lh_status
launch_forward(const LhCudaForward *f, void *stream)
{
    return is_narrow(f->a.storage) ? lh_cuda_forward(f, stream) : lh_cuda_forward_fp32(f, stream);
}

static enum lh_status
run_forward(const LhCall *call, LhCudaForward *f, void *stream)
{
    enum lh_status status;

    if (f->a.nq == 0 || f->a.heads == 0 || f->a.batch == 0)
        return LH_STATUS_OK;
    f->q = lh_cuda_rows(lh_rows_q(call, 0));
    f->k = lh_cuda_rows(lh_rows_k(call, 1));
    f->v = lh_cuda_rows(lh_rows_v(call, 1));
    status = mask_of(call, 0, 1, stream, &f->a);
    return status == LH_STATUS_OK ? launch_forward(f, stream) : status;
}

static enum lh_status
attention(const LhCall *call, void *stream)
{
    LhCudaForward f = { .lse = lh_cuda_rows(lh_rows_stat(call, 3)), .normalise = true };

    if (!prepare(call, 1 << 0 | 1 << 1, 1 << 1, 4, &f.a) ||
        !result(call, &f.a, 2, lh_rows_q(call, 2), &f.o))
        return LH_STATUS_UNSUPPORTED;
    return run_forward(call, &f, stream);
}

static enum lh_status
attention_fwd(const LhCall *call, void *stream)
{
    LhCudaForward f = { .m = lh_cuda_rows(lh_rows_acc_stat(call, 2, 0)),
                        .l = lh_cuda_rows(lh_rows_acc_stat(call, 2, 1)),
                        .load = !call->args->first };

    if (!prepare(call, 1 << 0 | 1 << 1, 1 << 1, 3, &f.a) ||
        !result(call, &f.a, 2, lh_rows_q(call, 2), &f.o) || !can_hold_stat(&call->operands[2], f.m))
        return LH_STATUS_UNSUPPORTED;
    return run_forward(call, &f, stream);
}

static enum lh_status
attention_block(const LhCall *call, void *stream)
{
    LhCudaForward f = { .lse = lh_cuda_rows(lh_rows_acc_stat(call, 2, 0)), .normalise = true };

    if (!prepare(call, 1 << 0 | 1 << 1, 1 << 1, 3, &f.a) ||
        !result(call, &f.a, 2, lh_rows_q(call, 2), &f.o) ||
        !can_hold_stat(&call->operands[2], f.lse))
        return LH_STATUS_UNSUPPORTED;
    return run_forward(call, &f, stream);
}

/* ---- backward ---- */

static enum lh_status
launch_backward(const LhCudaBackward *w, void *stream)
{
    const bool narrow = is_narrow(w->a.storage);
    enum lh_status status = LH_STATUS_OK;

    if (w->a.nq > 0)
        status =
            narrow ? lh_cuda_backward_queries(w, stream) : lh_cuda_backward_queries_fp32(w, stream);
    if (status == LH_STATUS_OK && w->a.nk > 0)
        status = narrow ? lh_cuda_backward_keys(w, stream) : lh_cuda_backward_keys_fp32(w, stream);
    return status;
}

/* Checks both kernels first: if the GPU cannot run one of them, neither is launched. */
static enum lh_status
ask_for_backward(LhCudaBackward *w, void *stream)
{
    enum lh_status status;

    w->a.asks = true;
    status = launch_backward(w, stream);
    w->a.asks = false;
    return status;
}

/*
 * Operands q, do, .., lse, kv, dq, dkv. delta is set by the caller; with @delta it is computed
 * first.
 */
static enum lh_status
run_backward(const LhCall *call, LhCudaBackward *w, const LhCudaDelta *delta, void *stream)
{
    enum lh_status status;

    w->q = lh_cuda_rows(lh_rows_q(call, 0));
    w->dout = lh_cuda_rows(lh_rows_q(call, 1));
    w->lse = lh_cuda_rows(lh_rows_stat(call, 3));
    w->k = lh_cuda_rows(lh_rows_k(call, 4));
    w->v = lh_cuda_rows(lh_rows_v(call, 4));
    w->load = !call->args->first;
    if (!result(call, &w->a, 5, lh_rows_q(call, 5), &w->dq) ||
        !result(call, &w->a, 6, lh_rows_k(call, 6), &w->dk) ||
        !result(call, &w->a, 6, lh_rows_v(call, 6), &w->dv))
        return LH_STATUS_UNSUPPORTED;
    if (w->a.heads == 0 || w->a.batch == 0)
        return LH_STATUS_OK;
    status = ask_for_backward(w, stream);
    if (status == LH_STATUS_OK && delta != NULL)
        status = lh_cuda_delta(delta, stream);
    if (status == LH_STATUS_OK)
        status = mask_of(call, 0, 4, stream, &w->a);
    return status == LH_STATUS_OK ? launch_backward(w, stream) : status;
}

static enum lh_status
attention_bwd(const LhCall *call, void *stream)
{
    LhCudaBackward w = { .delta = lh_cuda_rows(lh_rows_stat(call, 2)) };

    if (!prepare(call, 1 << 0 | 1 << 1 | 1 << 4, 1 << 4 | 1 << 6, 7, &w.a))
        return LH_STATUS_UNSUPPORTED;
    return run_backward(call, &w, NULL, stream);
}

static LhCudaDelta
delta_of(const LhCall *call, unsigned dout, unsigned o, LhCudaRows delta)
{
    const LhKernelArgs *a = call->args;

    return (LhCudaDelta){ .dout = lh_cuda_rows(lh_rows_q(call, dout)),
                          .o = lh_cuda_rows(lh_rows_q(call, o)),
                          .delta = delta,
                          .batch = a->batch,
                          .heads = a->heads,
                          .nq = (uint32_t)a->nq,
                          .dim = a->head_dim,
                          .storage = call->operands[dout].storage };
}

/* delta is in scratch, after the mask. */
static enum lh_status
attention_bwd_o(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const LhCudaRows delta = { .data = (unsigned char *)call->scratch + lh_cuda_mask_bytes(a),
                               .part_rows = (uint32_t)a->nq,
                               .heads = a->heads };
    const LhCudaDelta d = delta_of(call, 1, 2, delta);
    LhCudaBackward w = { .delta = delta };

    if (!prepare(call, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4, 1 << 4 | 1 << 6, 7, &w.a))
        return LH_STATUS_UNSUPPORTED;
    return run_backward(call, &w, &d, stream);
}

static uint64_t
backward_o_scratch(const LhKernelArgs *a)
{
    return lh_cuda_mask_bytes(a) + a->batch * a->nq * a->heads * sizeof(float);
}

static enum lh_status
delta(const LhCall *call, void *stream)
{
    const LhCudaDelta d = delta_of(call, 0, 1, lh_cuda_rows(lh_rows_stat(call, 2)));

    if (!lh_parts_divide(call, 3, 0) || call->operands[1].storage != d.storage)
        return LH_STATUS_UNSUPPORTED;
    return lh_cuda_delta(&d, stream);
}

const LhCudaKernel lh_cuda_kernel_attention = {
    .run = attention,
    .scratch_bytes = lh_cuda_mask_bytes,
};
const LhCudaKernel lh_cuda_kernel_attention_fwd = {
    .run = attention_fwd,
    .scratch_bytes = lh_cuda_mask_bytes,
};
const LhCudaKernel lh_cuda_kernel_attention_block = {
    .run = attention_block,
    .scratch_bytes = lh_cuda_mask_bytes,
};
const LhCudaKernel lh_cuda_kernel_attention_bwd = {
    .run = attention_bwd,
    .scratch_bytes = lh_cuda_mask_bytes,
};
const LhCudaKernel lh_cuda_kernel_attention_bwd_o = {
    .run = attention_bwd_o,
    .scratch_bytes = backward_o_scratch,
};
const LhCudaKernel lh_cuda_kernel_delta = { .run = delta };
