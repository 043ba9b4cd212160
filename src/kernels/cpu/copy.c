/* On a CPU; what it does says the row, kernels/copy.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

static enum lh_status
run(const LhCall *call)
{
    return lh_elements_add(call, false);
}

const LhCpuKernel lh_cpu_kernel_copy = {
    .reference = run,
    .fast = run,
};
