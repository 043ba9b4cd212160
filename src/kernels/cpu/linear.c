/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/linear.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/linear_run.h"
#include "kernels/cpu/linear_tiles.h"
#include "kernels/sizes.h"

#include <stddef.h>

/* ---- linear_intra ---- */

static bool
linear_intra_prepare(const LhCall *call, LhForward *f)
{
    const uint64_t table_bytes = lh_weights_scratch(call->args->nq);
    void *rest = (char *)call->scratch + table_bytes;

    *f = (LhForward){ .args = call->args,
                      .q = lh_rows_q(call, 0),
                      .k = lh_rows_k(call, 1),
                      .v = lh_rows_v(call, 1),
                      .o = lh_rows_q(call, 2),
                      .load = !call->args->first,
                      .linear = true,
                      .decay = lh_decay_table(call->args, call->scratch),
                      .scratch = rest };
    return (f->decay == NULL || call->args->mask == LH_MASK_CAUSAL ||
            call->args->mask == LH_MASK_EMPTY) &&
           lh_parts_divide(call, 3, 1 << 1);
}

static void
forward_in_tiles(const LhForward *f)
{
    if (lh_linear_tiles(f->args).count > 1)
        lh_linear_forward_tiles(f);
    else
        lh_cpu()->forward(f);
}

LH_CPU_RUNS(linear_intra, LhForward, lh_attention_forward_reference, forward_in_tiles)

const LhCpuKernel lh_cpu_kernel_linear_intra = {
    .reference = linear_intra_reference,
    .fast = linear_intra_cpu,
    .scratch_bytes = lh_linear_forward_scratch,
};

/* ---- linear_inter ---- */

static uint64_t
linear_inter_scratch_bytes(const LhKernelArgs *a)
{
    return lh_weights_scratch(a->nq) + lh_state_scratch(a);
}

static bool
linear_inter_prepare(const LhCall *call, LhStateApply *s)
{
    const uint64_t rows = call->args->nq;
    double *weights = call->scratch;

    lh_decay_queries(call->args, weights, rows);
    *s = (LhStateApply){ .args = call->args,
                         .in = lh_rows_q(call, 0),
                         .out = lh_rows_q(call, 2),
                         .rows = rows,
                         .state = (const float *)(const void *)call->operands[1].data,
                         .weights = weights,
                         .load = !call->args->first,
                         .scratch = (char *)call->scratch + lh_weights_scratch(rows) };
    return call->operands[1].parts == 1 && lh_parts_divide(call, 3, 0);
}

LH_CPU_RUNS(linear_inter, LhStateApply, lh_state_apply_reference, lh_cpu()->state_apply)

const LhCpuKernel lh_cpu_kernel_linear_inter = {
    .reference = linear_inter_reference,
    .fast = linear_inter_cpu,
    .scratch_bytes = linear_inter_scratch_bytes,
};

/* ---- linear_state ---- */

static uint64_t
linear_state_scratch_bytes(const LhKernelArgs *a)
{
    return lh_weights_scratch(a->nk) + lh_state_scratch(a);
}

static bool
linear_state_prepare(const LhCall *call, LhStateSum *s)
{
    const uint64_t rows = call->args->nk;
    double *weights = call->scratch;

    lh_decay_keys(call->args, weights, rows);
    *s = (LhStateSum){ .args = call->args,
                       .x = lh_rows_k(call, 0),
                       .y = lh_rows_v(call, 0),
                       .rows = rows,
                       .state = (float *)(void *)call->operands[1].data,
                       .weights = weights,
                       .keep = call->args->first ? 0 : lh_decay_power(call->args, rows),
                       .scratch = (char *)call->scratch + lh_weights_scratch(rows) };
    return call->operands[1].parts == 1 && lh_parts_divide(call, 1, 1 << 0);
}

LH_CPU_RUNS(linear_state, LhStateSum, lh_state_sum_reference, lh_cpu()->state_sum)

const LhCpuKernel lh_cpu_kernel_linear_state = {
    .reference = linear_state_reference,
    .fast = linear_state_cpu,
    .scratch_bytes = linear_state_scratch_bytes,
};

/* ---- linear_carry ---- */

/* Reference and fast version: in fp64, bound by memory. */
static enum lh_status
linear_carry_run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const float *source = (const float *)(const void *)call->operands[0].data;
    float *target = (float *)(void *)call->operands[1].data;
    const double factor = lh_decay_power(a, a->nq + a->nk);
    const uint64_t count = lh_state_elements(a);

    if (call->operands[0].parts != 1 || call->operands[1].parts != 1)
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t i = 0; i < count; i++)
        target[i] = (float)(factor * (double)source[i] + (a->first ? 0 : (double)target[i]));
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_linear_carry = {
    .reference = linear_carry_run,
    .fast = linear_carry_run,
};

/* ---- linear_prefix ---- */

/*
 * Reference and fast version: in fp64, bound by memory. Sums by Horner's rule, starting with the
 * most decayed source.
 */
static enum lh_status
linear_prefix_run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const LhView *sources = &call->operands[0];
    float *target = (float *)(void *)call->operands[1].data;
    const double factor = lh_decay_power(a, a->nq + a->nk);
    const uint64_t count = lh_state_elements(a);

    if (a->states == 0 || sources->parts != a->states || call->operands[1].parts != 1)
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t k = 0; k < count; k++) {
        double sum = 0;

        for (uint32_t i = 0; i < a->states; i++) {
            const uint32_t part = a->nk > 0 ? i : a->states - 1 - i;
            const float *source =
                (const float *)(void *)(sources->data + part * sources->part_bytes);

            sum = factor * sum + (double)source[k];
        }
        target[k] = (float)sum;
    }
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_linear_prefix = {
    .reference = linear_prefix_run,
    .fast = linear_prefix_run,
};

/* ---- linear_intra_bwd ---- */

static bool
linear_intra_bwd_prepare(const LhCall *call, LhBackward *b)
{
    const uint64_t table_bytes = lh_weights_scratch(call->args->nq);
    void *rest = (char *)call->scratch + table_bytes;

    *b = (LhBackward){ .args = call->args,
                       .q = lh_rows_q(call, 0),
                       .dout = lh_rows_q(call, 1),
                       .k = lh_rows_k(call, 2),
                       .v = lh_rows_v(call, 2),
                       .dq = lh_rows_q(call, 3),
                       .dk = lh_rows_k(call, 4),
                       .dv = lh_rows_v(call, 4),
                       .load = !call->args->first,
                       .linear = true,
                       .decay = lh_decay_table(call->args, call->scratch),
                       .scratch = rest };
    return (b->decay == NULL || call->args->mask == LH_MASK_CAUSAL ||
            call->args->mask == LH_MASK_EMPTY) &&
           lh_parts_divide(call, 5, 1 << 2 | 1 << 4);
}

static void
backward_in_tiles(const LhBackward *b)
{
    if (lh_linear_tiles(b->args).count > 1)
        lh_linear_backward_tiles(b);
    else
        lh_cpu()->backward(b);
}

LH_CPU_RUNS(linear_intra_bwd, LhBackward, lh_attention_backward_reference, backward_in_tiles)

const LhCpuKernel lh_cpu_kernel_linear_intra_bwd = {
    .reference = linear_intra_bwd_reference,
    .fast = linear_intra_bwd_cpu,
    .scratch_bytes = lh_linear_backward_scratch,
};

/* ---- linear_inter_bwd ---- */

static bool
linear_inter_bwd_prepare(const LhCall *call, LhStateApply *s)
{
    const bool prepared = linear_inter_prepare(call, s);

    s->transpose = true;
    return prepared;
}

LH_CPU_RUNS(linear_inter_bwd, LhStateApply, lh_state_apply_reference, lh_cpu()->state_apply)

const LhCpuKernel lh_cpu_kernel_linear_inter_bwd = {
    .reference = linear_inter_bwd_reference,
    .fast = linear_inter_bwd_cpu,
    .scratch_bytes = linear_inter_scratch_bytes,
};

/* ---- linear_state_bwd ---- */

/* dk_i += decay^(n-1-i) v_i dstate^T, dv_i += decay^(n-1-i) k_i dstate. */
static bool
linear_state_bwd_prepare(const LhCall *call, LhStateApply *dk, LhStateApply *dv)
{
    const uint64_t rows = call->args->nk;
    double *weights = call->scratch;

    lh_decay_keys(call->args, weights, rows);
    *dk = (LhStateApply){ .args = call->args,
                          .in = lh_rows_v(call, 0),
                          .out = lh_rows_k(call, 2),
                          .rows = rows,
                          .state = (const float *)(const void *)call->operands[1].data,
                          .weights = weights,
                          .transpose = true,
                          .load = !call->args->first,
                          .scratch = (char *)call->scratch + lh_weights_scratch(rows) };
    *dv = *dk;
    dv->in = lh_rows_k(call, 0);
    dv->out = lh_rows_v(call, 2);
    dv->transpose = false;
    return call->operands[1].parts == 1 && lh_parts_divide(call, 3, 1 << 0 | 1 << 1 | 1 << 2);
}

static enum lh_status
linear_state_bwd_reference(const LhCall *call)
{
    LhStateApply dk, dv;

    if (!linear_state_bwd_prepare(call, &dk, &dv))
        return LH_STATUS_UNSUPPORTED;
    lh_state_apply_reference(&dk);
    lh_state_apply_reference(&dv);
    return LH_STATUS_OK;
}

static enum lh_status
linear_state_bwd_cpu(const LhCall *call)
{
    LhStateApply dk, dv;

    if (!linear_state_bwd_prepare(call, &dk, &dv))
        return LH_STATUS_UNSUPPORTED;
    lh_cpu()->state_apply(&dk);
    lh_cpu()->state_apply(&dv);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_linear_state_bwd = {
    .reference = linear_state_bwd_reference,
    .fast = linear_state_bwd_cpu,
    .scratch_bytes = linear_state_scratch_bytes,
};

/* ---- linear_dstate ---- */

static bool
linear_dstate_prepare(const LhCall *call, LhStateSum *s)
{
    const uint64_t rows = call->args->nq;
    double *weights = call->scratch;

    lh_decay_queries(call->args, weights, rows);
    *s = (LhStateSum){ .args = call->args,
                       .x = lh_rows_q(call, 0),
                       .y = lh_rows_q(call, 1),
                       .rows = rows,
                       .state = (float *)(void *)call->operands[2].data,
                       .weights = weights,
                       .keep = call->args->first ? 0 : lh_decay_power(call->args, rows),
                       .scratch = (char *)call->scratch + lh_weights_scratch(rows) };
    return call->operands[2].parts == 1 && lh_parts_divide(call, 2, 0);
}

LH_CPU_RUNS(linear_dstate, LhStateSum, lh_state_sum_reference, lh_cpu()->state_sum)

const LhCpuKernel lh_cpu_kernel_linear_dstate = {
    .reference = linear_dstate_reference,
    .fast = linear_dstate_cpu,
    .scratch_bytes = linear_inter_scratch_bytes,
};
