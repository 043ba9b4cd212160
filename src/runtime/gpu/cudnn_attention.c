/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which calls cuDNN computes, and with which functions. Its masks are full and causal, its
 * types 16-bit.
 */
#include "runtime/gpu/cudnn_attention.h"

#include "runtime/gpu/cudnn_private.h"

#define DIM_STEP 8U
#define DIM_MAX 256U

/* ---- supported calls ---- */

/* How cuDNN computes a kernel of the table; enqueue NULL: not supported. */
typedef struct {
    LhKernelId kernel;
    void (*enqueue)(LhCudnnJob *j);
    unsigned operands_count;
    unsigned inputs, keys; /* bit masks: operands of the activations' type; operands of keys */
    unsigned kv;           /* operand of keys and values */
} Row;

static const Row kernel_rows[] = {
    { LH_KERNEL_ID_attention, lh_cudnn_attention, 4, 1 << 0 | 1 << 1 | 1 << 2, 1 << 1, 1 },
    { LH_KERNEL_ID_attention_fwd, lh_cudnn_attention_fwd, 3, 1 << 0 | 1 << 1, 1 << 1, 1 },
    { LH_KERNEL_ID_attention_block, lh_cudnn_attention_block, 3, 1 << 0 | 1 << 1 | 1 << 2, 1 << 1,
      1 },
    { LH_KERNEL_ID_attention_bwd_o, lh_cudnn_attention_bwd_o, 7, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4,
      1 << 4 | 1 << 6, 4 },
    { LH_KERNEL_ID_attention_bwd, NULL, 7, 0, 1 << 4 | 1 << 6, 4 },
};

static const Row *
row_of(LhKernelId kernel)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kernel_rows); i++) {
        if (kernel_rows[i].kernel == kernel)
            return &kernel_rows[i];
    }
    return NULL;
}

bool
lh_cudnn_computes(LhKernelId kernel, const LhKernelArgs *args)
{
    return row_of(kernel) != NULL && args->mask != LH_MASK_EMPTY && args->nq > 0 && args->nk > 0 &&
           args->batch > 0 && args->heads > 0;
}

/* False if the job is rejected. */
static bool
check_types(LhCudnnJob *j, const Row *row)
{
    const enum lh_storage storage = j->call->operands[0].storage;

    if (storage != LH_STORAGE_BF16 && storage != LH_STORAGE_FP16)
        lh_cudnn_decline(j, "cuDNN's attention supports bf16 and fp16, not fp32");
    for (unsigned i = 0; i < row->operands_count && j->status == LH_STATUS_OK; i++) {
        if ((row->inputs >> i & 1) != 0 && j->call->operands[i].storage != storage)
            lh_cudnn_decline(j, "cuDNN's attention needs q, k, v and o of one type");
    }
    return j->status == LH_STATUS_OK;
}

static bool
check_call(LhCudnnJob *j, const Row *row)
{
    const LhKernelArgs *a = j->args;

    if (row->enqueue == NULL)
        lh_cudnn_decline(
            j, "cuDNN's backward attention computes delta from o, which this call does not "
               "have; schedules that give it o are those of TransformerEngine and of the rings");
    else if (a->head_dim % DIM_STEP != 0 || a->head_dim > DIM_MAX)
        lh_cudnn_decline(
            j,
            "cuDNN's attention supports head dimensions that are multiples of %u up to %u, not "
            "%u",
            DIM_STEP, DIM_MAX, a->head_dim);
    else if (!lh_parts_divide(j->call, row->operands_count, row->keys) || a->groups == 0 ||
             a->heads % a->groups != 0 || a->nq >= LH_CUDNN_ROWS_MAX || a->nk >= LH_CUDNN_ROWS_MAX)
        lh_cudnn_decline(j, "this number of rows or heads is not supported");
    else
        return check_types(j, row);
    return false;
}

static void
enqueue_call(LhCudnnJob *j, LhKernelId kernel)
{
    const Row *row = row_of(kernel);

    j->args = j->call->args;
    j->kv = row->kv;
    j->blocks = g_array_new(FALSE, FALSE, sizeof(LhCudnnBlock));
    if (check_call(j, row))
        lh_cudnn_count_runs(j);
    if (j->status == LH_STATUS_OK)
        row->enqueue(j);
    g_array_unref(j->blocks);
}

uint64_t
lh_cudnn_scratch_bytes(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call)
{
    LhCudnnJob j = { .device = device, .call = call, .counts = true };

    enqueue_call(&j, kernel);
    return j.scratch_most;
}

enum lh_status
lh_cudnn_call(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call, void *stream)
{
    LhCudnnJob j = { .device = device, .call = call, .stream = stream };

    j.scratch.base = call->scratch;
    enqueue_call(&j, kernel);
    return j.status;
}
