/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/attention.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

/* Common operands of the forward kernels: inputs, and the accumulator or o. */
static LhForward
forward_of(const LhCall *call)
{
    return (LhForward){ .args = call->args,
                        .q = lh_rows_q(call, 0),
                        .k = lh_rows_k(call, 1),
                        .v = lh_rows_v(call, 1),
                        .o = lh_rows_q(call, 2),
                        .scratch = call->scratch };
}

/* ---- attention ---- */

static bool
attention_prepare(const LhCall *call, LhForward *f)
{
    *f = forward_of(call);
    f->lse = lh_rows_stat(call, 3);
    f->normalise = true;
    return lh_parts_divide(call, 4, 1 << 1);
}

LH_CPU_RUNS(attention, LhForward, lh_attention_forward_reference, lh_cpu()->forward)

const LhCpuKernel lh_cpu_kernel_attention = {
    .reference = attention_reference,
    .fast = attention_cpu,
    .scratch_bytes = lh_attention_forward_scratch,
};

/* ---- attention_fwd ---- */

static bool
attention_fwd_prepare(const LhCall *call, LhForward *f)
{
    *f = forward_of(call);
    f->m = lh_rows_acc_stat(call, 2, 0);
    f->l = lh_rows_acc_stat(call, 2, 1);
    f->load = !call->args->first;
    return lh_parts_divide(call, 3, 1 << 1);
}

LH_CPU_RUNS(attention_fwd, LhForward, lh_attention_forward_reference, lh_cpu()->forward)

const LhCpuKernel lh_cpu_kernel_attention_fwd = {
    .reference = attention_fwd_reference,
    .fast = attention_fwd_cpu,
    .scratch_bytes = lh_attention_forward_scratch,
};

/* ---- attention_block ---- */

static bool
attention_block_prepare(const LhCall *call, LhForward *f)
{
    *f = forward_of(call);
    f->lse = lh_rows_acc_stat(call, 2, 0);
    f->normalise = true;
    return lh_parts_divide(call, 3, 1 << 1);
}

LH_CPU_RUNS(attention_block, LhForward, lh_attention_forward_reference, lh_cpu()->forward)

const LhCpuKernel lh_cpu_kernel_attention_block = {
    .reference = attention_block_reference,
    .fast = attention_block_cpu,
    .scratch_bytes = lh_attention_forward_scratch,
};

/* ---- attention_bwd ---- */

/*
 * Common part of both backward kernels; operand 2 (delta, or o, from which it is computed) is left
 * to them.
 */
static bool
prepare_backward(const LhCall *call, LhBackward *b)
{
    *b = (LhBackward){ .args = call->args,
                       .q = lh_rows_q(call, 0),
                       .dout = lh_rows_q(call, 1),
                       .lse = lh_rows_stat(call, 3),
                       .k = lh_rows_k(call, 4),
                       .v = lh_rows_v(call, 4),
                       .dq = lh_rows_q(call, 5),
                       .dk = lh_rows_k(call, 6),
                       .dv = lh_rows_v(call, 6),
                       .load = !call->args->first,
                       .scratch = call->scratch };
    return lh_parts_divide(call, 7, 1 << 4 | 1 << 6);
}

static bool
attention_bwd_prepare(const LhCall *call, LhBackward *b)
{
    const bool prepared = prepare_backward(call, b);

    b->delta = lh_rows_stat(call, 2);
    return prepared;
}

LH_CPU_RUNS(attention_bwd, LhBackward, lh_attention_backward_reference, lh_cpu()->backward)

const LhCpuKernel lh_cpu_kernel_attention_bwd = {
    .reference = attention_bwd_reference,
    .fast = attention_bwd_cpu,
    .scratch_bytes = lh_attention_backward_scratch,
};

/* ---- attention_bwd_o ---- */

static bool
attention_bwd_o_prepare(const LhCall *call, LhBackward *b)
{
    const bool prepared = prepare_backward(call, b);

    b->o = lh_rows_q(call, 2);
    return prepared;
}

LH_CPU_RUNS(attention_bwd_o, LhBackward, lh_attention_backward_reference, lh_cpu()->backward)

const LhCpuKernel lh_cpu_kernel_attention_bwd_o = {
    .reference = attention_bwd_o_reference,
    .fast = attention_bwd_o_cpu,
    .scratch_bytes = lh_attention_backward_scratch,
};

/* ---- delta ---- */

#define BLOCK 256U
#define LANES 8U

static double
dot_reference(const LhRows *a, const void *x, const LhRows *b, const void *y)
{
    double sum = 0;

    for (uint32_t c = 0; c < a->dim; c++)
        sum += lh_element_get(x, a->storage, c) * lh_element_get(y, b->storage, c);
    return sum;
}

/* Sums blocks of fp32 products in fp64 lanes. */
static double
dot_fast(const LhRows *a, const void *x, const LhRows *b, const void *y)
{
    float p[BLOCK], q[BLOCK];
    double lanes[LANES] = { 0 }, sum = 0;

    for (uint32_t c = 0; c < a->dim; c += BLOCK) {
        const uint32_t count = a->dim - c < BLOCK ? a->dim - c : BLOCK;

        memset(p, 0, sizeof(p));
        memset(q, 0, sizeof(q));
        lh_cpu()->to_fp32(p, (const char *)x + c * (size_t)lh_storage_bytes(a->storage), a->storage,
                          count);
        lh_cpu()->to_fp32(q, (const char *)y + c * (size_t)lh_storage_bytes(b->storage), b->storage,
                          count);
        for (uint32_t i = 0; i < count; i += LANES) {
            for (uint32_t lane = 0; lane < LANES; lane++)
                lanes[lane] += (double)p[i + lane] * (double)q[i + lane];
        }
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static enum lh_status
delta_run(const LhCall *call,
          double (*dot)(const LhRows *a, const void *x, const LhRows *b, const void *y))
{
    const LhRows dout = lh_rows_q(call, 0), o = lh_rows_q(call, 1), delta = lh_rows_stat(call, 2);

    if (!lh_parts_divide(call, 3, 0))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t b = 0; b < call->args->batch; b++) {
        for (uint64_t i = 0; i < call->args->nq; i++) {
            for (uint32_t head = 0; head < call->args->heads; head++)
                *lh_stat_at(&delta, b, i, head) = (float)dot(&dout, lh_rows_at(&dout, b, i, head),
                                                             &o, lh_rows_at(&o, b, i, head));
        }
    }
    return LH_STATUS_OK;
}

static enum lh_status
delta_reference(const LhCall *call)
{
    return delta_run(call, dot_reference);
}

static enum lh_status
delta_cpu(const LhCall *call)
{
    return delta_run(call, dot_fast);
}

const LhCpuKernel lh_cpu_kernel_delta = {
    .reference = delta_reference,
    .fast = delta_cpu,
};
