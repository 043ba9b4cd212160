/*
 * The gradient of the state before the tokens of a call: dstate = decay^n dstate + sum of
 * decay^(i+1) q_i^T do_i. With `first` it is the tokens' own, to which linear_carry adds what comes
 * from behind.
 */
#include "kernels/cpu.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a) * a->head_dim + (a->first ? 0 : 2 * lh_state_elements(a));
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return (a->first ? 1 : 2) * state + 2 * lh_q_elements(a) * element_bytes;
}

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return lh_weights_scratch(a->nq) + lh_state_scratch(a);
}

static bool
prepare(const LhCall *call, LhStateSum *s)
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

static enum lh_status
reference(const LhCall *call)
{
    LhStateSum s;

    if (!prepare(call, &s))
        return LH_STATUS_UNSUPPORTED;
    lh_state_sum_reference(&s);
    return LH_STATUS_OK;
}

static enum lh_status
cpu(const LhCall *call)
{
    LhStateSum s;

    if (!prepare(call, &s))
        return LH_STATUS_UNSUPPORTED;
    lh_cpu()->state_sum(&s);
    return LH_STATUS_OK;
}

const LhKernel lh_kernel_linear_dstate = {
    .name = "linear_dstate",
    .summary = "gradient of the state that a block of queries reads",
    .effect = LH_EFFECT_STATE_SUM,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "dstate", LH_OPERAND_UPDATE, LH_TENSOR_DSTATE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
    .scratch_bytes = scratch_bytes,
    .linear = true,
};
