/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of keys, and the blocks of queries that see them. Under a mask by position a block consists
 * of consecutive rows, so that it is full or causal for cuDNN.
 */
#include "runtime/gpu/cudnn_private.h"

#include "base/error.h"
#include "model/attention.h"

#include <math.h>
#include <string.h>

/* ---- masks ---- */

/* Adds the block, if any, of @nq queries from @first on that see keys j <= i + @shift, i counted
 * from @first. Leading queries that see no key, and trailing keys that no query sees, are left
 * out. */
static void
add_block(LhCudnnJob *j, uint64_t first, uint64_t nq, int64_t shift)
{
    const uint64_t blind = shift < 0 ? (uint64_t)-shift : 0;
    LhCudnnBlock b = { .first = first + blind, .mask = LH_CUDNN_CAUSAL };

    j->rows_left |= blind > 0;
    if (blind >= nq)
        return;
    b.nq = nq - blind;
    b.shift = (int32_t)MIN(MAX(shift, 0), (int64_t)LH_CUDNN_ROWS_MAX - 1);
    b.nk = MIN(j->nk, b.nq + (uint64_t)b.shift);
    if ((uint64_t)b.shift + 1 >= b.nk)
        b.mask = LH_CUDNN_FULL;
    else if (b.shift > 0)
        b.mask = LH_CUDNN_SHIFTED;
    g_array_append_val(j->blocks, b);
}

/* a / b, rounded down. */
static int64_t
floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

/* Whether the parts are consecutive in the sequence, as if they were one part. */
static bool
are_joined(const LhRowsPosition *at, uint64_t stride, uint64_t rows, uint64_t part_rows)
{
    return part_rows == rows || at->part_step == (int64_t)(part_rows * stride);
}

void
lh_cudnn_count_runs(LhCudnnJob *j)
{
    const LhKernelArgs *a = j->args;
    const uint32_t parts = j->call->operands[j->kv].parts;

    j->runs = 1;
    if (a->mask != LH_MASK_POSITIONS)
        return;
    if (!lh_mask_is_plain(a->rule))
        lh_cudnn_decline(
            j, "cuDNN is called with full and causal masks, not with windows or documents");
    else if (a->rule->causal && !are_joined(&a->k_at, a->stride, a->nk, a->nk / parts))
        j->runs = parts;
}

/* Row i is at position start + i stride, so query i sees key j if j <= i + (start of q - start of
 * k) / stride. */
static void
cut_by_position(LhCudnnJob *j, uint32_t run)
{
    const LhKernelArgs *a = j->args;
    const uint64_t part_rows = a->nq / j->call->operands[0].parts;
    const uint64_t rows = are_joined(&a->q_at, a->stride, a->nq, part_rows) ? a->nq : part_rows;
    const int64_t k_start = a->k_at.start + (int64_t)run * a->k_at.part_step;

    for (uint64_t first = 0; first < a->nq; first += rows) {
        const int64_t q_start = a->q_at.start + (int64_t)(first / rows) * a->q_at.part_step;

        add_block(j, first, rows, floor_divide(q_start - k_start, (int64_t)a->stride));
    }
}

void
lh_cudnn_cut_run(LhCudnnJob *j, uint32_t run)
{
    const LhKernelArgs *a = j->args;
    const bool all = a->mask == LH_MASK_FULL || (a->mask == LH_MASK_POSITIONS && !a->rule->causal);

    j->nk = a->nk / j->runs;
    j->rows_left = false;
    g_array_set_size(j->blocks, 0);
    if (all || a->mask == LH_MASK_CAUSAL)
        add_block(j, 0, a->nq, all ? (int64_t)j->nk : a->shift);
    else
        cut_by_position(j, run);
}

LhRows
lh_cudnn_of_run(const LhCudnnJob *j, LhRows t, uint32_t run)
{
    t.data += j->runs > 1 ? run * t.part_bytes : 0;
    return t;
}

/* ---- plans ---- */

static LhCudnnShape
block_shape(const LhCudnnJob *j, const LhCudnnBlock *b, bool backward)
{
    const LhKernelArgs *a = j->args;

    return (LhCudnnShape){ .backward = backward,
                           .mask = b->mask,
                           .storage = j->call->operands[0].storage,
                           .batch = a->batch,
                           .heads = a->heads,
                           .groups = a->groups,
                           .dim = a->head_dim,
                           .nq = b->nq,
                           .nk = b->nk,
                           /* A single sequence has no pitch; a fixed value makes plans reusable. */
                           .q_rows = a->batch == 1 ? b->nq : a->nq,
                           .k_rows = a->batch == 1 ? b->nk : j->nk };
}

/* NULL if the job has failed. */
static const LhCudnnPlan *
plan_for(LhCudnnJob *j, const LhCudnnBlock *b, bool backward)
{
    const LhCudnnShape shape = block_shape(j, b, backward);
    const LhCudnnPlan *plan;
    GError *error = NULL;

    if (j->status != LH_STATUS_OK)
        return NULL;
    pthread_mutex_lock(&j->device->lock);
    plan = lh_cudnn_device_plan(j->device, &shape, &error);
    pthread_mutex_unlock(&j->device->lock);
    if (plan == NULL)
        lh_cudnn_fail(j,
                      g_error_matches(error, LH_ERROR, LH_ERROR_NO) ? LH_STATUS_UNSUPPORTED
                                                                    : LH_STATUS_DEVICE,
                      error);
    return plan;
}

void
lh_cudnn_reserve_workspace(LhCudnnJob *j, bool backward)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < j->blocks->len; i++) {
        const LhCudnnPlan *plan = plan_for(j, &g_array_index(j->blocks, LhCudnnBlock, i), backward);

        bytes = plan == NULL ? bytes : MAX(bytes, plan->workspace_bytes);
    }
    j->workspace = lh_cudnn_take(j, bytes);
}

void
lh_cudnn_run_block(LhCudnnJob *j, const LhCudnnBlock *b, bool backward,
                   void *const tensors[LH_CUDNN_TENSORS])
{
    const LhCudnnPlan *plan = plan_for(j, b, backward);
    float scale = (float)lh_attention_scale(j->args->scale, j->args->head_dim);
    float one = 1, minus_inf = -INFINITY;
    int32_t shift = b->shift;
    void *memory[LH_CUDNN_TENSORS];
    GError *error = NULL;
    bool done;

    if (j->counts || plan == NULL)
        return;
    memcpy(memory, tensors, sizeof(memory));
    memory[LH_CUDNN_SCALE] = &scale;
    memory[LH_CUDNN_ONE] = backward ? &one : NULL;
    memory[LH_CUDNN_MINUS_INF] = b->mask == LH_CUDNN_FULL ? NULL : &minus_inf;
    memory[LH_CUDNN_SHIFT] = b->mask == LH_CUDNN_SHIFTED ? &shift : NULL;
    pthread_mutex_lock(&j->device->lock);
    done =
        lh_cudnn_check(j->device->cudnn, j->device->cudnn->SetStream(j->device->handle, j->stream),
                       "stream", &error) &&
        lh_cudnn_plan_run(plan, j->device->handle, memory, j->workspace, &error);
    pthread_mutex_unlock(&j->device->lock);
    if (!done)
        lh_cudnn_fail(j, LH_STATUS_DEVICE, error);
}
