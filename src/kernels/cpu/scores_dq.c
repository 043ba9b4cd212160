/* On a CPU; what it does says the row, kernels/scores_dq.c. */
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/scores_run.h"

static enum lh_status
run(const LhCall *call, void (*product)(const LhScoresProduct *p))
{
    LhScoresProduct p;

    if (!lh_scores_prepare(call, 0, 2, 1, &p))
        return LH_STATUS_UNSUPPORTED;
    product(&p);
    return LH_STATUS_OK;
}

static enum lh_status
reference(const LhCall *call)
{
    return run(call, lh_scores_apply_reference);
}

static enum lh_status
cpu(const LhCall *call)
{
    return run(call, lh_scores_apply_fast);
}

const LhCpuKernel lh_cpu_kernel_scores_dq = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = lh_scores_scratch,
};
