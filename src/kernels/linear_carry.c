/*
 * Passes a state, or its gradient, over the n = nq + nk tokens of a block (one of the two is 0):
 * target = decay^n source + target; with `first` target = decay^n source.
 */
#include "kernels/linear_run.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    return (a->first ? 1 : 2) * lh_state_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return (a->first ? 2 : 3) * lh_state_elements(a) * LH_FP32_BYTES;
}

/* In fp64 and bound by memory: reference and fast version. */
static enum lh_status
run(const LhCall *call)
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

const LhKernel lh_kernel_linear_carry = {
    .name = "linear_carry",
    .summary = "adds the decayed state of earlier tokens to that of a block",
    .effect = LH_EFFECT_STATE_CARRY,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "source", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { "target", LH_OPERAND_UPDATE, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = run,
    .cpu = run,
    .linear = true,
};
