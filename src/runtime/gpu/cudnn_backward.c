/* SPDX-License-Identifier: Apache-2.0 */
/* Attention backward for calls that have o. Gradients of several blocks are accumulated. */
#include "runtime/gpu/cudnn_private.h"

/* Operands q, do, o, lse, kv, dq, dkv. */
typedef struct {
    LhRows q, dout, o, lse, dq; /* of the call */
    LhRows k, v, dk, dv;        /* of a run of keys */
    void *delta, *dq_sum;
} Backward;

static Backward
prepare_backward(LhCudnnJob *j)
{
    const LhKernelArgs *a = j->args;
    const LhCall *call = j->call;
    const uint64_t rows = a->batch * a->nq * a->heads;
    Backward w = { .q = lh_cudnn_read_whole(j, lh_rows_q(call, 0), a->nq),
                   .dout = lh_cudnn_read_whole(j, lh_rows_q(call, 1), a->nq),
                   .o = lh_cudnn_read_whole(j, lh_rows_q(call, 2), a->nq),
                   .lse = lh_cudnn_read_whole(j, lh_rows_stat(call, 3), a->nq) };

    w.dq = lh_cudnn_scratch_for(j, &w.q, a->nq, w.q.storage);
    w.delta = lh_cudnn_take(j, rows * sizeof(float));
    w.dq_sum = lh_cudnn_take(j, rows * a->head_dim * sizeof(float));
    return w;
}

static void
run_backward(LhCudnnJob *j, const Backward *w, const LhCudnnBlock *b)
{
    void *const tensors[LH_CUDNN_TENSORS] = {
        [LH_CUDNN_Q] = lh_cudnn_row_at(&w->q, b->first),
        [LH_CUDNN_K] = w->k.data,
        [LH_CUDNN_V] = w->v.data,
        [LH_CUDNN_O] = lh_cudnn_row_at(&w->o, b->first),
        [LH_CUDNN_LSE] = lh_cudnn_row_at(&w->lse, b->first),
        [LH_CUDNN_DO] = lh_cudnn_row_at(&w->dout, b->first),
        [LH_CUDNN_DQ] = lh_cudnn_row_at(&w->dq, b->first),
        [LH_CUDNN_DK] = w->dk.data,
        [LH_CUDNN_DV] = w->dv.data,
        [LH_CUDNN_DELTA] = w->delta,
        [LH_CUDNN_DQ_SUM] = w->dq_sum,
    };

    lh_cudnn_run_block(j, b, true, tensors);
}

/* Zeroes dk and dv of keys that a block does not see. */
static void
zero_keys(LhCudnnJob *j, const Backward *w)
{
    lh_cudnn_zero_rows(j, &w->dk, j->nk);
    lh_cudnn_zero_rows(j, &w->dv, j->nk);
}

static void
add_keys(LhCudnnJob *j, const Backward *w, uint32_t run, bool first)
{
    const LhRows dk = lh_cudnn_of_run(j, lh_rows_k(j->call, 6), run);
    const LhRows dv = lh_cudnn_of_run(j, lh_rows_v(j->call, 6), run);

    lh_cudnn_add_rows(j, &w->dk, &dk, j->nk, first);
    lh_cudnn_add_rows(j, &w->dv, &dv, j->nk, first);
}

/* Accumulates the gradients of a run's keys block by block; each query is in at most one block. */
static void
backward_run(LhCudnnJob *j, Backward *w, uint32_t run)
{
    const LhRows dq = lh_rows_q(j->call, 5);
    const bool first = j->args->first;

    w->dk = lh_cudnn_scratch_for(j, &w->k, j->nk, w->k.storage);
    w->dv = lh_cudnn_scratch_for(j, &w->v, j->nk, w->v.storage);
    lh_cudnn_reserve_workspace(j, true);
    if (j->rows_left)
        lh_cudnn_zero_rows(j, &w->dq, j->args->nq);
    for (guint i = 0; i < j->blocks->len; i++) {
        const LhCudnnBlock *b = &g_array_index(j->blocks, LhCudnnBlock, i);

        if (b->nk < j->nk)
            zero_keys(j, w);
        run_backward(j, w, b);
        add_keys(j, w, run, first && i == 0);
    }
    if (j->blocks->len == 0 && first) {
        zero_keys(j, w);
        add_keys(j, w, run, true);
    }
    lh_cudnn_add_rows(j, &w->dq, &dq, j->args->nq, first && run == 0);
}

void
lh_cudnn_attention_bwd_o(LhCudnnJob *j)
{
    Backward w = prepare_backward(j);
    const uint64_t used = j->scratch.used;

    for (uint32_t run = 0; run < j->runs; run++) {
        lh_cudnn_cut_run(j, run);
        w.k = lh_cudnn_read_whole(j, lh_cudnn_of_run(j, lh_rows_k(j->call, j->kv), run), j->nk);
        w.v = lh_cudnn_read_whole(j, lh_cudnn_of_run(j, lh_rows_v(j->call, j->kv), run), j->nk);
        backward_run(j, &w, run);
        j->scratch.used = used;
    }
}
