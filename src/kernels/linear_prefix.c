/*
 * Adds up the states of blocks of n = nq + nk tokens each (one of the two is 0), which come in the
 * order of the blocks: source i of m counts decay^((m-1-i) n), the last one wholly. Gradients (nq)
 * are added up from the other side: decay^(i n), the first one wholly.
 */
#include "kernels/linear_run.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * a->states * lh_state_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return ((uint64_t)a->states + 1) * lh_state_elements(a) * LH_FP32_BYTES;
}

/* In fp64 and bound by memory: reference and fast version. The sum goes by Horner's rule, away from
 * the source that counts least. */
static enum lh_status
run(const LhCall *call)
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

const LhKernel lh_kernel_linear_prefix = {
    .name = "linear_prefix",
    .summary = "adds up the states of blocks one after another, decayed",
    .effect = LH_EFFECT_STATE_PREFIX,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "sources", LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = run,
    .cpu = run,
    .linear = true,
};
