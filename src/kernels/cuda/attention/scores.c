/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA versions of kernels/scores.c: converts calls to launcher arguments. */
#include "kernels/cpu/scores_run.h"

#include "kernels/cuda/attention/softmax.h"
#include "kernels/cuda/product/host_product.h"
#include "kernels/cuda/table.h"

#define RUNS(word, scratch)                                                                        \
    const LhCudaKernel lh_cuda_kernel_##word = { .run = word, .scratch_bytes = scratch };

/* Sets @to to scores: rows by query and head, @heads at a time; columns by parts of the keys. */
static bool
find_scores(LhCudaMatrix *to, const LhScores *s, uint64_t rows, uint32_t heads)
{
    const uint64_t head = s->rows.dim * (uint64_t)lh_storage_bytes(s->rows.storage);
    LhMatrix m = { .data = s->rows.data,
                   .part_bytes = s->rows.part_bytes,
                   .part_elements = rows * heads * s->rows.dim,
                   .width = s->rows.dim,
                   .storage = s->rows.storage };

    if (s->rows.storage == LH_STORAGE_FP64 || s->rows.dim == 0 ||
        !lh_cuda_matrix(to, &m, rows * heads))
        return false;
    to->rest = (int64_t)(heads == 1 ? s->rows.heads * head : head);
    to->width = (uint64_t)s->parts * s->rows.dim;
    to->column = lh_cuda_digit(s->rows.dim, s->rows.part_bytes);
    to->grouped &=
        (uint64_t)to->rest % 16 == 0 && head % 16 == 0 &&
        (s->parts == 1 || (s->rows.dim % LH_CUDA_GROUP == 0 && s->rows.part_bytes % 16 == 0));
    return true;
}

static bool
factor_of_scores(LhCudaFactor *f, const LhScores *s, uint32_t heads)
{
    const uint64_t head = s->rows.dim * (uint64_t)lh_storage_bytes(s->rows.storage);
    const uint32_t repeats = s->rows.heads / heads;

    *f = (LhCudaFactor){ .of_sequence = s->rows.part_rows * s->rows.heads * head,
                         .of_head = repeats * head,
                         .of_repeat = head,
                         .share = 1 };
    return find_scores(&f->matrix, s, s->rows.part_rows, 1);
}

/* Operands scores, by query row, by key, in the order of lh_scores_prepare(). */
typedef struct {
    LhScoresProduct p;
    LhCudaFactor scores, q, k;
} Operands;

static bool
prepare(const LhCall *call, unsigned scores, unsigned q, unsigned k, uint32_t heads, Operands *o)
{
    return lh_scores_prepare(call, scores, q, k, &o->p) &&
           factor_of_scores(&o->scores, &o->p.scores, heads) &&
           lh_cuda_factor_of_rows(&o->q, &o->p.q, heads) &&
           lh_cuda_factor_of_rows(&o->k, &o->p.k, heads);
}

/* scores = q k^T */
static enum lh_status
products_of_rows(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    LhCudaProduct p = lh_cuda_product(a->batch, a->heads, a->nq, a->nk);
    Operands o;

    if (!prepare(call, 2, 0, 1, a->heads, &o))
        return LH_STATUS_UNSUPPORTED;
    p.c = o.scores;
    p.terms[0].a = o.q;
    p.terms[0].b = o.k;
    p.terms[0].b_transposed = true;
    p.terms[0].depth.size = a->head_dim;
    return lh_cuda_multiply(&p, stream);
}

/* q = (q +) scores k */
static enum lh_status
apply(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    LhCudaProduct p = lh_cuda_product(a->batch, a->heads, a->nq, a->head_dim);
    Operands o;

    if (!prepare(call, 0, 2, 1, a->heads, &o))
        return LH_STATUS_UNSUPPORTED;
    p.c = o.q;
    p.keep = a->first ? 0 : 1;
    p.terms[0].a = o.scores;
    p.terms[0].b = o.k;
    p.terms[0].depth.size = (uint32_t)a->nk;
    return lh_cuda_multiply(&p, stream);
}

/* k = scores^T q, summed over all heads that share k's */
static enum lh_status
apply_transposed(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    LhCudaProduct p = lh_cuda_product(a->batch, a->groups, a->nk, a->head_dim);
    Operands o;

    if (!prepare(call, 0, 1, 2, a->groups, &o))
        return LH_STATUS_UNSUPPORTED;
    p.c = o.k;
    p.terms[0].a = o.scores;
    p.terms[0].b = o.q;
    p.terms[0].a_transposed = true;
    p.terms[0].repeats = a->heads / a->groups;
    p.terms[0].depth.size = (uint32_t)a->nq;
    return lh_cuda_multiply(&p, stream);
}

const LhCudaKernel lh_cuda_kernel_scores = { .run = products_of_rows };
const LhCudaKernel lh_cuda_kernel_scores_dp = { .run = products_of_rows };
const LhCudaKernel lh_cuda_kernel_scores_o = { .run = apply };
const LhCudaKernel lh_cuda_kernel_scores_dq = { .run = apply };
const LhCudaKernel lh_cuda_kernel_scores_dv = { .run = apply_transposed };
const LhCudaKernel lh_cuda_kernel_scores_dk = { .run = apply_transposed };

/* Finds the rows of all sequences, queries and heads. */
static bool
find_rows(LhCudaMatrix *to, const LhCall *call, unsigned operand)
{
    const LhScores s = lh_scores_of(call, operand);

    return find_scores(to, &s, call->args->batch * call->args->nq, call->args->heads);
}

static LhCudaSoftmax
softmax_of(const LhKernelArgs *a)
{
    return (LhCudaSoftmax){ .queries = a->nq,
                            .rows = (uint32_t)(a->batch * a->nq * a->heads),
                            .heads = a->heads,
                            .keys = (uint32_t)a->nk,
                            .scale = (float)lh_attention_scale(a->scale, a->head_dim) };
}

static enum lh_status
scores_softmax(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const LhRows lse = lh_rows_stat(call, 2);
    LhCudaSoftmax s = softmax_of(a);
    enum lh_status status;

    s.lse = lh_cuda_tensor(lse);
    if (!lh_parts_divide(call, 3, 1 << 0 | 1 << 1) || !find_rows(&s.scores, call, 0) ||
        !find_rows(&s.probs, call, 1))
        return LH_STATUS_UNSUPPORTED;
    status = lh_cuda_mask(a, lse.part_rows, a->nk / call->operands[0].parts, call->scratch, stream,
                          &s.mask);
    return status != LH_STATUS_OK ? status : lh_cuda_softmax(&s, stream);
}

static enum lh_status
scores_softmax_bwd(const LhCall *call, void *stream)
{
    LhCudaSoftmax s = softmax_of(call->args);

    if (!lh_parts_divide(call, 3, 1 << 0 | 1 << 1 | 1 << 2) || !find_rows(&s.probs, call, 0) ||
        !find_rows(&s.scores, call, 1) || !find_rows(&s.dscores, call, 2))
        return LH_STATUS_UNSUPPORTED;
    return lh_cuda_softmax_bwd(&s, stream);
}

RUNS(scores_softmax, lh_cuda_mask_bytes)
RUNS(scores_softmax_bwd, NULL)
