/* On a CPU; what it does says the row, kernels/linear_carry.c. */
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/linear_run.h"
#include "kernels/sizes.h"

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

const LhCpuKernel lh_cpu_kernel_linear_carry = {
    .reference = run,
    .fast = run,
};
