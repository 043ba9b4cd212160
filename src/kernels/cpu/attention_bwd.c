/* On a CPU; what it does says the row, kernels/attention_bwd.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

static bool
prepare(const LhCall *call, LhBackward *b)
{
    *b = (LhBackward){ .args = call->args,
                       .q = lh_rows_q(call, 0),
                       .dout = lh_rows_q(call, 1),
                       .delta = lh_rows_stat(call, 2),
                       .lse = lh_rows_stat(call, 3),
                       .k = lh_rows_k(call, 4),
                       .v = lh_rows_v(call, 4),
                       .dq = lh_rows_q(call, 5),
                       .dk = lh_rows_k(call, 6),
                       .dv = lh_rows_v(call, 6),
                       .load = !call->args->first,
                       .scratch = call->scratch };
    return lh_parts_divide(call, 7, 1 << 4 | 1 << 6);
}

LH_CPU_RUNS(LhBackward, lh_attention_backward_reference, backward)

const LhCpuKernel lh_cpu_kernel_attention_bwd = {
    .reference = reference,
    .fast = cpu,
    .scratch_bytes = lh_attention_backward_scratch,
};
