/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA versions of the kernels on rows of attention's tensors, kernels/merge.c and
 * kernels/elementwise.c: converts calls to launcher arguments.
 */
#include "kernels/cuda/attention/rows_of_tensors.h"

#include "kernels/cuda/host_operands.h"
#include "kernels/cuda/table.h"

#define RUNS(word) const LhCudaKernel lh_cuda_kernel_##word = { .run = word };

static bool
is_known(const LhCudaTensor *t)
{
    return t->data == NULL || t->storage != LH_STORAGE_FP64;
}

/* Statistics after an odd number of 16-bit elements are misaligned. */
static bool
is_aligned(const LhCudaTensor *stat)
{
    return (uintptr_t)stat->data % sizeof(float) == 0 && stat->part_bytes % sizeof(float) == 0;
}

static enum lh_status
combine(LhCudaCombination *c, void *stream)
{
    if (!is_known(&c->source) || !is_known(&c->target))
        return LH_STATUS_UNSUPPORTED;
    for (unsigned i = 0; i < 2; i++) {
        if (!is_aligned(&c->source_stat[i]) || !is_aligned(&c->target_stat[i]))
            return LH_STATUS_UNSUPPORTED;
    }
    if (c->share == 0)
        c->share = 1;
    return lh_cuda_combine(c, stream);
}

/* ---- rows of queries ---- */

static LhCudaCombination
of_queries(const LhCall *call, unsigned target, uint32_t way)
{
    const LhKernelArgs *a = call->args;

    return (LhCudaCombination){ .source = lh_cuda_tensor(lh_rows_q(call, 0)),
                                .target = lh_cuda_tensor(lh_rows_q(call, target)),
                                .batch = a->batch,
                                .rows = a->nq,
                                .heads = a->heads,
                                .way = way,
                                .first = a->first };
}

static LhCudaTensor
acc_stat(const LhCall *call, unsigned operand, unsigned index)
{
    return lh_cuda_tensor(lh_rows_acc_stat(call, operand, index));
}

static LhCudaTensor
stat(const LhCall *call, unsigned operand)
{
    return lh_cuda_tensor(lh_rows_stat(call, operand));
}

static enum lh_status
merge(const LhCall *call, void *stream)
{
    LhCudaCombination c;

    if (!lh_parts_divide(call, 2, 0))
        return LH_STATUS_UNSUPPORTED;
    c = of_queries(call, 1, LH_CUDA_MERGE);
    for (unsigned i = 0; i < 2; i++) {
        c.source_stat[i] = acc_stat(call, 0, i);
        c.target_stat[i] = acc_stat(call, 1, i);
    }
    return combine(&c, stream);
}

enum lh_status
lh_cuda_merge_block(const LhCall *call, void *stream)
{
    LhCudaCombination c;

    if (!lh_parts_divide(call, 2, 0))
        return LH_STATUS_UNSUPPORTED;
    c = of_queries(call, 1, LH_CUDA_MERGE);
    c.source_stat[0] = acc_stat(call, 0, 0);
    for (unsigned i = 0; i < 2; i++)
        c.target_stat[i] = acc_stat(call, 1, i);
    return combine(&c, stream);
}

static enum lh_status
merge_lse(const LhCall *call, void *stream)
{
    LhCudaCombination c;

    if (!lh_parts_divide(call, 2, 0))
        return LH_STATUS_UNSUPPORTED;
    c = of_queries(call, 1, LH_CUDA_MERGE_LSE);
    c.source_stat[0] = acc_stat(call, 0, 0);
    c.target_stat[0] = acc_stat(call, 1, 0);
    return combine(&c, stream);
}

static enum lh_status
merge_stat(const LhCall *call, void *stream)
{
    LhCudaCombination c;

    if (!lh_parts_divide(call, 2, 0))
        return LH_STATUS_UNSUPPORTED;
    c = of_queries(call, 1, LH_CUDA_MERGE_STAT);
    c.source.data = c.target.data = NULL;
    c.source_stat[0] = acc_stat(call, 0, 0);
    c.target_stat[0] = stat(call, 1);
    return combine(&c, stream);
}

static enum lh_status
weigh_out(const LhCall *call, void *stream)
{
    LhCudaCombination c;

    if (!lh_parts_divide(call, 3, 0))
        return LH_STATUS_UNSUPPORTED;
    c = of_queries(call, 2, LH_CUDA_WEIGH);
    c.source_stat[0] = acc_stat(call, 0, 0);
    c.source_stat[1] = stat(call, 1);
    return combine(&c, stream);
}

static enum lh_status
normalise(const LhCall *call, void *stream)
{
    LhCudaCombination c;

    if (!lh_parts_divide(call, 3, 0))
        return LH_STATUS_UNSUPPORTED;
    c = of_queries(call, 1, LH_CUDA_NORMALISE);
    c.source_stat[0] = acc_stat(call, 0, 0);
    c.source_stat[1] = acc_stat(call, 0, 1);
    c.target_stat[0] = stat(call, 2);
    return combine(&c, stream);
}

static enum lh_status
round_out(const LhCall *call, void *stream)
{
    LhCudaCombination c;

    if (!lh_parts_divide(call, 3, 0))
        return LH_STATUS_UNSUPPORTED;
    c = of_queries(call, 1, LH_CUDA_ROUND);
    c.source_stat[0] = acc_stat(call, 0, 0);
    c.target_stat[0] = stat(call, 2);
    return combine(&c, stream);
}

RUNS(merge)
RUNS(merge_lse)
RUNS(merge_stat)
RUNS(weigh_out)
RUNS(normalise)
RUNS(round_out)
const LhCudaKernel lh_cuda_kernel_copy_out = { .run = round_out };

/* ---- rows of keys ---- */

static enum lh_status
copy_keys(const LhCall *call, LhRows from, LhRows to, void *stream)
{
    LhCudaCombination c = { .source = lh_cuda_tensor(from),
                            .target = lh_cuda_tensor(to),
                            .batch = call->args->batch,
                            .rows = call->args->nk,
                            .heads = to.heads,
                            .share = to.heads / from.heads,
                            .way = LH_CUDA_COPY_ROWS };

    return combine(&c, stream);
}

static enum lh_status
take_k(const LhCall *call, void *stream)
{
    if (!lh_parts_divide(call, 2, 1 << 0 | 1 << 1))
        return LH_STATUS_UNSUPPORTED;
    return copy_keys(call, lh_rows_k(call, 0), lh_rows_k(call, 1), stream);
}

static enum lh_status
take_v(const LhCall *call, void *stream)
{
    if (!lh_parts_divide(call, 2, 1 << 0 | 1 << 1))
        return LH_STATUS_UNSUPPORTED;
    return copy_keys(call, lh_rows_v(call, 0), lh_rows_k(call, 1), stream);
}

static enum lh_status
join_dkv(const LhCall *call, void *stream)
{
    enum lh_status status;

    if (!lh_parts_divide(call, 3, 1 << 0 | 1 << 1 | 1 << 2))
        return LH_STATUS_UNSUPPORTED;
    status = copy_keys(call, lh_rows_k(call, 0), lh_rows_k(call, 2), stream);
    return status != LH_STATUS_OK ? status
                                  : copy_keys(call, lh_rows_k(call, 1), lh_rows_v(call, 2), stream);
}

static enum lh_status
expand_kv(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    enum lh_status status;
    LhRows to;

    if (!lh_parts_divide(call, 2, 1 << 0 | 1 << 1) || a->heads % a->groups != 0)
        return LH_STATUS_UNSUPPORTED;
    to = lh_rows_of(call, 1, a->nk, a->heads, a->head_dim);
    if (to.part_bytes < 2 * lh_rows_bytes(&to, a->batch))
        return LH_STATUS_UNSUPPORTED;
    status = copy_keys(call, lh_rows_k(call, 0), to, stream);
    to.data += lh_rows_bytes(&to, a->batch);
    return status != LH_STATUS_OK ? status : copy_keys(call, lh_rows_v(call, 0), to, stream);
}

RUNS(take_k)
RUNS(take_v)
RUNS(join_dkv)
RUNS(expand_kv)
