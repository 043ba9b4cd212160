/* On a CPU; what it does says the row, kernels/scores_dk.c. */
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/scores_run.h"

static enum lh_status
run(const LhCall *call, void (*product)(const LhScoresProduct *p))
{
    LhScoresProduct p;

    if (!lh_scores_prepare(call, 0, 1, 2, &p))
        return LH_STATUS_UNSUPPORTED;
    product(&p);
    return LH_STATUS_OK;
}

static enum lh_status
reference(const LhCall *call)
{
    return run(call, lh_scores_transposed_reference);
}

static enum lh_status
cpu(const LhCall *call)
{
    return run(call, lh_scores_transposed_fast);
}

const LhCpuKernel lh_cpu_kernel_scores_dk = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = lh_scores_scratch,
};
