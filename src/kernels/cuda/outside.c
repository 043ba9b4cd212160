/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA versions of kernels/outside.c: nothing to compute. */
#include "kernels/cuda/table.h"

static enum lh_status
run(const LhCall *call, void *stream)
{
    (void)call;
    (void)stream;
    return LH_STATUS_OK;
}

#define OUTSIDE(word) const LhCudaKernel lh_cuda_kernel_##word = { .run = run };

OUTSIDE(qkv_projection)
OUTSIDE(out_projection)
OUTSIDE(out_projection_dgrad)
OUTSIDE(qkv_projection_dgrad)
OUTSIDE(outside)
