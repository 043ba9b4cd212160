/* On a CPU; what it does says the row, kernels/attention_fwd.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

static bool
prepare(const LhCall *call, LhForward *f)
{
    *f = (LhForward){ .args = call->args,
                      .q = lh_rows_q(call, 0),
                      .k = lh_rows_k(call, 1),
                      .v = lh_rows_v(call, 1),
                      .o = lh_rows_q(call, 2),
                      .m = lh_rows_acc_stat(call, 2, 0),
                      .l = lh_rows_acc_stat(call, 2, 1),
                      .load = !call->args->first,
                      .scratch = call->scratch };
    return lh_parts_divide(call, 3, 1 << 1);
}

LH_CPU_RUNS(LhForward, lh_attention_forward_reference, forward)

const LhCpuKernel lh_cpu_kernel_attention_fwd = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = lh_attention_forward_scratch,
};
