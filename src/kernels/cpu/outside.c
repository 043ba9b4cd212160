/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/outside.c: nothing to compute. */
#include "kernels/cpu/kernels.h"

static enum lh_status
run(const LhCall *call)
{
    (void)call;
    return LH_STATUS_OK;
}

#define OUTSIDE(word) const LhCpuKernel lh_cpu_kernel_##word = { .reference = run, .fast = run };

OUTSIDE(qkv_projection)
OUTSIDE(out_projection)
OUTSIDE(out_projection_dgrad)
OUTSIDE(qkv_projection_dgrad)
OUTSIDE(outside)
