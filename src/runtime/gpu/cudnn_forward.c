/* SPDX-License-Identifier: Apache-2.0 */
/* Attention forward. Results of several runs of keys are merged in fp32. */
#include "runtime/gpu/cudnn_private.h"

#include "kernels/cuda/attention/rows_of_tensors.h"

/* Sets o = 0 and lse = -inf for all rows with longhaul's own kernel; rows without visible keys keep
 * these values. */
static void
leave_empty(LhCudnnJob *j, const LhRows *o, const LhRows *lse)
{
    LhKernelArgs args = *j->args;
    const LhCall call = { .args = &args,
                          .operands = { j->call->operands[0], j->call->operands[1],
                                        lh_cudnn_view(j, o, args.nq),
                                        lh_cudnn_view(j, lse, args.nq) } };

    args.mask = LH_MASK_EMPTY;
    args.pairs = 0;
    lh_cudnn_call_own(j, LH_KERNEL_ID_attention, call);
}

/* Attends to one run of keys, into @o and @lse; these and @q are contiguous. */
static void
attend_run(LhCudnnJob *j, uint32_t run, const LhRows *q, const LhRows *o, const LhRows *lse)
{
    const uint64_t used = j->scratch.used;
    LhRows k, v;

    lh_cudnn_cut_run(j, run);
    k = lh_cudnn_read_whole(j, lh_cudnn_of_run(j, lh_rows_k(j->call, j->kv), run), j->nk);
    v = lh_cudnn_read_whole(j, lh_cudnn_of_run(j, lh_rows_v(j->call, j->kv), run), j->nk);
    lh_cudnn_reserve_workspace(j, false);
    if (j->rows_left)
        leave_empty(j, o, lse);
    for (guint i = 0; i < j->blocks->len; i++) {
        const LhCudnnBlock *b = &g_array_index(j->blocks, LhCudnnBlock, i);
        void *const tensors[LH_CUDNN_TENSORS] = {
            [LH_CUDNN_Q] = lh_cudnn_row_at(q, b->first),
            [LH_CUDNN_K] = k.data,
            [LH_CUDNN_V] = v.data,
            [LH_CUDNN_O] = lh_cudnn_row_at(o, b->first),
            [LH_CUDNN_LSE] = lh_cudnn_row_at(lse, b->first),
        };

        lh_cudnn_run_block(j, b, false, tensors);
    }
    j->scratch.used = used;
}

/* The view of o with the one or two statistics stored after it. */
static LhView
with_stats(const LhCudnnJob *j, const LhRows *o, unsigned stats)
{
    const uint64_t rows = j->args->batch * j->args->nq * j->args->heads;
    LhView view = lh_cudnn_view(j, o, j->args->nq);

    view.part_bytes = view.held_bytes += stats * rows * sizeof(float);
    return view;
}

/* Computes each run of keys as a block and merges it into the accumulator (o, m, l). */
static void
attend_and_merge(LhCudnnJob *j, const LhView *acc, bool first)
{
    const uint64_t nq = j->args->nq, rows = j->args->batch * nq * j->args->heads;
    const LhRows q = lh_cudnn_read_whole(j, lh_rows_q(j->call, 0), nq);
    LhRows o = lh_cudnn_like(j, &q, nq, q.storage), lse = lh_rows_stat(j->call, 0);
    LhKernelArgs args = *j->args;

    o.data = lh_cudnn_take(j, o.part_bytes + rows * sizeof(float));
    lse = lh_cudnn_like(j, &lse, nq, LH_STORAGE_FP32);
    lse.data = lh_cudnn_row_at(&o, j->args->batch * nq);
    for (uint32_t run = 0; run < j->runs; run++) {
        const LhCall merge = { .args = &args, .operands = { with_stats(j, &o, 1), *acc } };
        enum lh_status status;

        attend_run(j, run, &q, &o, &lse);
        args.first = first && run == 0;
        if (j->counts || j->status != LH_STATUS_OK)
            continue;
        status = lh_cuda_merge_block(&merge, j->stream);
        if (status != LH_STATUS_OK)
            lh_cudnn_fail(j, status, NULL);
    }
}

void
lh_cudnn_attention_fwd(LhCudnnJob *j)
{
    attend_and_merge(j, &j->call->operands[2], j->args->first);
}

/* Merges several runs of keys through an accumulator. */
static void
merge_to(LhCudnnJob *j, const LhRows *o, const LhRows *lse)
{
    const uint64_t nq = j->args->nq, rows = j->args->batch * nq * j->args->heads;
    LhRows acc = lh_cudnn_like(j, o, nq, LH_STORAGE_FP32);
    LhView view;

    acc.data = lh_cudnn_take(j, acc.part_bytes + 2 * rows * sizeof(float));
    view = with_stats(j, &acc, 2);
    attend_and_merge(j, &view, true);
    lh_cudnn_call_own(
        j, LH_KERNEL_ID_normalise,
        (LhCall){ .args = j->args,
                  .operands = { view, lh_cudnn_view(j, o, nq), lh_cudnn_view(j, lse, nq) } });
}

/* Computes o and lse of the call into @o and @lse. */
static void
forward_to(LhCudnnJob *j, LhRows o, LhRows lse)
{
    const uint64_t nq = j->args->nq;
    const bool o_whole = lh_cudnn_is_whole(j, &o, nq), lse_whole = lh_cudnn_is_whole(j, &lse, nq);
    LhRows q, to_o, to_lse;

    if (j->runs > 1) {
        merge_to(j, &o, &lse);
        return;
    }
    q = lh_cudnn_read_whole(j, lh_rows_q(j->call, 0), nq);
    to_o = o_whole ? o : lh_cudnn_scratch_for(j, &o, nq, o.storage);
    to_lse = lse_whole ? lse : lh_cudnn_scratch_for(j, &lse, nq, lse.storage);
    attend_run(j, 0, &q, &to_o, &to_lse);
    if (!o_whole)
        lh_cudnn_copy_rows(j, &to_o, &o, nq);
    if (!lse_whole)
        lh_cudnn_copy_rows(j, &to_lse, &lse, nq);
}

void
lh_cudnn_attention(LhCudnnJob *j)
{
    forward_to(j, lh_rows_q(j->call, 2), lh_rows_stat(j->call, 3));
}

void
lh_cudnn_attention_block(LhCudnnJob *j)
{
    forward_to(j, lh_rows_q(j->call, 2), lh_rows_acc_stat(j->call, 2, 0));
}
