/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA versions of kernels/linear.c that involve states: converts calls to products. Decay weights
 * apply to the rows or steps of a product's first factor.
 */
#include "kernels/cpu/linear_run.h"
#include "kernels/cuda/attention/linear_decay.h"
#include "kernels/cuda/product/host_product.h"
#include "kernels/cuda/rows/elementwise.h"
#include "kernels/cuda/table.h"
#include "kernels/sizes.h"

#define RUNS(word, scratch)                                                                        \
    const LhCudaKernel lh_cuda_kernel_##word = { .run = word, .scratch_bytes = scratch };
#define ROWS_MOST (UINT64_C(1) << 31)

static LhCudaFactor
of_state(const LhCall *call, unsigned operand, uint32_t heads)
{
    const LhKernelArgs *a = call->args;
    const LhCudaStack stack = { .data = call->operands[operand].data,
                                .rows = a->head_dim,
                                .columns = a->head_dim,
                                .tiles = 1,
                                .heads = a->heads };

    return lh_cuda_factor_of_stack(&stack, heads);
}

/* out (+)= weight in state, or its transpose, summed over the heads that share out's. */
typedef struct {
    LhRows in, out;
    uint64_t rows;
    unsigned state;
    LhCudaWeights weights;
    bool transposed;
} Apply;

static enum lh_status
apply(const LhCall *call, const Apply *s, void *stream)
{
    const LhKernelArgs *a = call->args;
    LhCudaProduct p = lh_cuda_product(a->batch, s->out.heads, s->rows, a->head_dim);

    if (s->rows >= ROWS_MOST || call->operands[s->state].parts != 1 ||
        !lh_cuda_factor_of_rows(&p.terms[0].a, &s->in, s->out.heads) ||
        !lh_cuda_factor_of_rows(&p.c, &s->out, s->out.heads))
        return LH_STATUS_UNSUPPORTED;
    p.terms[0].b = of_state(call, s->state, s->out.heads);
    p.terms[0].b_transposed = s->transposed;
    p.terms[0].depth.size = a->head_dim;
    p.terms[0].repeats = a->heads / s->out.heads;
    p.terms[0].weighed = true;
    p.terms[0].weights = s->weights;
    p.keep = a->first ? 0 : 1;
    return lh_cuda_multiply(&p, stream);
}

/* state = decay^rows state + the sum of weight x^T y. */
typedef struct {
    LhRows x, y;
    uint64_t rows;
    unsigned state;
    LhCudaWeights weights;
} Sum;

static enum lh_status
sum_up(const LhCall *call, const Sum *s, void *stream)
{
    const LhKernelArgs *a = call->args;
    LhCudaProduct p = lh_cuda_product(a->batch, a->heads, a->head_dim, a->head_dim);

    if (s->rows >= ROWS_MOST || call->operands[s->state].parts != 1 ||
        !lh_cuda_factor_of_rows(&p.terms[0].a, &s->x, a->heads) ||
        !lh_cuda_factor_of_rows(&p.terms[0].b, &s->y, a->heads))
        return LH_STATUS_UNSUPPORTED;
    p.terms[0].a_transposed = true;
    p.terms[0].depth.size = (uint32_t)s->rows;
    p.terms[0].weighed = true;
    p.terms[0].weights = s->weights;
    p.c = of_state(call, s->state, a->heads);
    p.keep = a->first ? 0 : (float)lh_decay_power(a, s->rows);
    return lh_cuda_multiply(&p, stream);
}

static enum lh_status
inter(const LhCall *call, bool transposed, void *stream)
{
    const Apply s = { .in = lh_rows_q(call, 0),
                      .out = lh_rows_q(call, 2),
                      .rows = call->args->nq,
                      .state = 1,
                      .weights = lh_cuda_query_weights(call->args),
                      .transposed = transposed };

    return lh_parts_divide(call, 3, 0) ? apply(call, &s, stream) : LH_STATUS_UNSUPPORTED;
}

static enum lh_status
linear_inter(const LhCall *call, void *stream)
{
    return inter(call, false, stream);
}

static enum lh_status
linear_inter_bwd(const LhCall *call, void *stream)
{
    return inter(call, true, stream);
}

static enum lh_status
linear_state(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const Sum s = { .x = lh_rows_k(call, 0),
                    .y = lh_rows_v(call, 0),
                    .rows = a->nk,
                    .state = 1,
                    .weights = lh_cuda_key_weights(a, a->nk) };

    return lh_parts_divide(call, 1, 1 << 0) ? sum_up(call, &s, stream) : LH_STATUS_UNSUPPORTED;
}

static enum lh_status
linear_dstate(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const Sum s = { .x = lh_rows_q(call, 0),
                    .y = lh_rows_q(call, 1),
                    .rows = a->nq,
                    .state = 2,
                    .weights = lh_cuda_query_weights(a) };

    return lh_parts_divide(call, 2, 0) ? sum_up(call, &s, stream) : LH_STATUS_UNSUPPORTED;
}

static enum lh_status
linear_state_bwd(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const unsigned keys = 1 << 0 | 1 << 1 | 1 << 2;
    Apply s = { .rows = a->nk, .state = 1, .weights = lh_cuda_key_weights(a, a->nk) };
    enum lh_status status;

    if (!lh_parts_divide(call, 3, keys))
        return LH_STATUS_UNSUPPORTED;
    s.in = lh_rows_v(call, 0);
    s.out = lh_rows_k(call, 2);
    s.transposed = true;
    status = apply(call, &s, stream);
    s.in = lh_rows_k(call, 0);
    s.out = lh_rows_v(call, 2);
    s.transposed = false;
    return status != LH_STATUS_OK ? status : apply(call, &s, stream);
}

static LhCudaLine
line_of_state(const LhView *view, uint64_t count)
{
    const LhMatrix m = {
        .data = view->data, .part_elements = count, .width = count, .storage = LH_STORAGE_FP32
    };

    return lh_cuda_line(&m, 0, 0);
}

/* target = decay^n source (+ target). */
static enum lh_status
linear_carry(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const uint64_t count = lh_state_elements(a);
    const LhCudaLine source = line_of_state(&call->operands[0], count);
    const LhCudaLine target = line_of_state(&call->operands[1], count);
    LhCudaElements e = { .lines = { source, target, target },
                         .count = 1,
                         .width = count,
                         .function = LH_CUDA_SUM_OF_TWO,
                         .value = (float)lh_decay_power(a, a->nq + a->nk) };

    if (call->operands[0].parts != 1 || call->operands[1].parts != 1)
        return LH_STATUS_UNSUPPORTED;
    if (a->first)
        e.lines[1].data = NULL;
    return lh_cuda_elements(&e, stream);
}

/* Horner's rule, starting with the most decayed source. */
static enum lh_status
linear_prefix(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const LhView *sources = &call->operands[0];
    LhCudaTerms t = { .sum = call->operands[1].data,
                      .elements = lh_state_elements(a),
                      .count = a->states,
                      .storage = LH_STORAGE_FP32,
                      .factor = (float)lh_decay_power(a, a->nq + a->nk) };

    if (a->states == 0 || a->states > LH_CUDA_TERMS || sources->parts != a->states ||
        call->operands[1].parts != 1)
        return LH_STATUS_UNSUPPORTED;
    t.grouped = (uintptr_t)t.sum % 16 == 0;
    for (uint32_t i = 0; i < a->states; i++) {
        t.terms[i] = sources->data + (a->nk > 0 ? i : a->states - 1 - i) * sources->part_bytes;
        t.grouped &= (uintptr_t)t.terms[i] % 16 == 0;
    }
    return lh_cuda_terms(&t, stream);
}

RUNS(linear_inter, NULL)
RUNS(linear_inter_bwd, NULL)
RUNS(linear_state, NULL)
RUNS(linear_dstate, NULL)
RUNS(linear_state_bwd, NULL)
RUNS(linear_carry, NULL)
RUNS(linear_prefix, NULL)
