/* On a CPU; what it does says the row, kernels/add.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

static enum lh_status
run(const LhCall *call)
{
    return lh_elements_add(call, !call->args->first);
}

const LhCpuKernel lh_cpu_kernel_add = {
    .reference = run,
    .fast = run,
};
