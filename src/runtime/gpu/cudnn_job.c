/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scratch memory of a call, longhaul's own kernels around cuDNN's, and tensors in the form cuDNN
 * needs: with one row stride. Operands that are split into parts are gathered first, and results
 * are scattered.
 */
#include "runtime/gpu/cudnn_private.h"

#include "base/error.h"
#include "kernels/cuda/table.h"

void
lh_cudnn_fail(LhCudnnJob *j, enum lh_status status, GError *error)
{
    pthread_mutex_lock(&j->device->lock);
    g_free(j->device->why);
    j->device->why = error != NULL ? g_strdup(error->message) : NULL;
    pthread_mutex_unlock(&j->device->lock);
    g_clear_error(&error);
    j->status = status;
}

void
lh_cudnn_decline(LhCudnnJob *j, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    lh_cudnn_fail(j, LH_STATUS_UNSUPPORTED,
                  g_error_new_valist(LH_ERROR, LH_ERROR_NO, format, arguments));
    va_end(arguments);
}

void *
lh_cudnn_take(LhCudnnJob *j, uint64_t bytes)
{
    void *taken = lh_cuda_take(&j->scratch, bytes);

    j->scratch_most = MAX(j->scratch_most, j->scratch.used);
    return taken;
}

void
lh_cudnn_call_own(LhCudnnJob *j, LhKernelId kernel, LhCall call)
{
    const LhCudaKernel *own = lh_cuda_kernels[kernel];
    const uint64_t bytes = own->scratch_bytes == NULL ? 0 : own->scratch_bytes(call.args);
    enum lh_status status;

    call.scratch = bytes == 0 ? NULL : lh_cudnn_take(j, bytes);
    if (j->counts || j->status != LH_STATUS_OK)
        return;
    status = own->run(&call, j->stream);
    if (status != LH_STATUS_OK)
        lh_cudnn_fail(j, status, NULL);
}

LhView
lh_cudnn_view(const LhCudnnJob *j, const LhRows *t, uint64_t rows)
{
    return (LhView){ .data = t->data,
                     .parts = (uint32_t)(rows / t->part_rows),
                     .part_bytes = t->part_bytes,
                     .storage = t->storage,
                     .held_bytes = lh_rows_bytes(t, j->args->batch) };
}

bool
lh_cudnn_is_whole(const LhCudnnJob *j, const LhRows *t, uint64_t rows)
{
    const uint64_t align = t->storage == LH_STORAGE_FP32 ? sizeof(float) : LH_CUDNN_ALIGN;
    const bool joined = j->args->batch == 1 && t->part_bytes == lh_rows_bytes(t, 1);

    return (uintptr_t)t->data % align == 0 && (t->part_rows == rows || joined);
}

LhRows
lh_cudnn_like(const LhCudnnJob *j, const LhRows *t, uint64_t rows, enum lh_storage storage)
{
    LhRows whole = { .part_rows = rows, .heads = t->heads, .dim = t->dim, .storage = storage };

    whole.part_bytes = lh_rows_bytes(&whole, j->args->batch);
    return whole;
}

LhRows
lh_cudnn_scratch_for(LhCudnnJob *j, const LhRows *t, uint64_t rows, enum lh_storage storage)
{
    LhRows whole = lh_cudnn_like(j, t, rows, storage);

    whole.data = lh_cudnn_take(j, whole.part_bytes);
    return whole;
}

void
lh_cudnn_copy_rows(LhCudnnJob *j, const LhRows *from, const LhRows *to, uint64_t rows)
{
    const LhKernelArgs args = {
        .nk = rows, .batch = j->args->batch, .groups = to->heads, .head_dim = to->dim
    };
    const LhCall call = {
        .args = &args, .operands = { lh_cudnn_view(j, from, rows), lh_cudnn_view(j, to, rows) }
    };

    lh_cudnn_call_own(j, LH_KERNEL_ID_take_k, call);
}

LhRows
lh_cudnn_read_whole(LhCudnnJob *j, LhRows t, uint64_t rows)
{
    LhRows whole = t;

    if (lh_cudnn_is_whole(j, &t, rows))
        return t;
    whole = lh_cudnn_scratch_for(j, &t, rows, t.storage);
    lh_cudnn_copy_rows(j, &t, &whole, rows);
    return whole;
}

void
lh_cudnn_add_rows(LhCudnnJob *j, const LhRows *from, const LhRows *to, uint64_t rows, bool first)
{
    const LhKernelArgs args = {
        .nq = rows, .batch = j->args->batch, .heads = to->heads, .head_dim = to->dim, .first = first
    };
    LhRows parted = *from;
    LhCall call = { .args = &args };

    parted.part_rows = to->part_rows;
    parted.part_bytes = lh_rows_bytes(&parted, j->args->batch);
    /* With one sequence the order of elements is the same either way. */
    if (to->part_rows != rows && j->args->batch > 1) {
        parted.data = lh_cudnn_take(j, rows / to->part_rows * parted.part_bytes);
        lh_cudnn_copy_rows(j, from, &parted, rows);
    }
    call.operands[0] = lh_cudnn_view(j, &parted, rows);
    call.operands[1] = lh_cudnn_view(j, to, rows);
    lh_cudnn_call_own(
        j, to->storage == LH_STORAGE_FP32 ? LH_KERNEL_ID_add_to_fp32 : LH_KERNEL_ID_add, call);
}

void
lh_cudnn_zero_rows(LhCudnnJob *j, const LhRows *t, uint64_t rows)
{
    const LhKernelArgs args = {
        .nq = rows, .batch = j->args->batch, .heads = t->heads, .head_dim = t->dim, .first = true
    };
    const LhCall call = { .args = &args, .operands = { lh_cudnn_view(j, t, rows) } };

    lh_cudnn_call_own(j, LH_KERNEL_ID_zero, call);
}

void *
lh_cudnn_row_at(const LhRows *t, uint64_t row)
{
    return t->data == NULL ? NULL
                           : t->data + row * t->heads * t->dim * lh_storage_bytes(t->storage);
}
