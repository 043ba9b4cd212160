/*
 * Linear attention with the tokens before the call's, through their state, forward: o_i +=
 * decay^(i+1) q_i state.
 */
#include "kernels/cpu.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a) * a->head_dim;
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t state = lh_state_elements(a) * LH_FP32_BYTES;

    return state + (a->first ? 2 : 3) * lh_q_elements(a) * element_bytes;
}

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return lh_weights_scratch(a->nq) + lh_state_scratch(a);
}

static bool
prepare(const LhCall *call, LhStateApply *s)
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

static enum lh_status
reference(const LhCall *call)
{
    LhStateApply s;

    if (!prepare(call, &s))
        return LH_STATUS_UNSUPPORTED;
    lh_state_apply_reference(&s);
    return LH_STATUS_OK;
}

static enum lh_status
cpu(const LhCall *call)
{
    LhStateApply s;

    if (!prepare(call, &s))
        return LH_STATUS_UNSUPPORTED;
    lh_cpu()->state_apply(&s);
    return LH_STATUS_OK;
}

const LhKernel lh_kernel_linear_inter = {
    .name = "linear_inter",
    .summary = "linear attention with all earlier tokens through their state, forward",
    .effect = LH_EFFECT_STATE_APPLY,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "state", LH_OPERAND_READ, LH_TENSOR_STATE, LH_ELEMENT_FP32 },
        { "o", LH_OPERAND_UPDATE, LH_TENSOR_O, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
    .scratch_bytes = scratch_bytes,
    .linear = true,
};
