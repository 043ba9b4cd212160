/* On a CPU; what it does says the row, kernels/linear_prefix.c. */
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/linear_run.h"
#include "kernels/sizes.h"

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

const LhCpuKernel lh_cpu_kernel_linear_prefix = {
    .reference = run,
    .fast = run,
};
