/* On a CPU; what it does says the row, kernels/scores.c. */
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/scores_run.h"

static enum lh_status
run(const LhCall *call, void (*product)(const LhScoresProduct *p))
{
    LhScoresProduct p;

    if (!lh_scores_prepare(call, 2, 0, 1, &p))
        return LH_STATUS_UNSUPPORTED;
    product(&p);
    return LH_STATUS_OK;
}

static enum lh_status
reference(const LhCall *call)
{
    return run(call, lh_scores_reference);
}

static enum lh_status
cpu(const LhCall *call)
{
    return run(call, lh_scores_fast);
}

const LhCpuKernel lh_cpu_kernel_scores = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = lh_scores_scratch,
};
