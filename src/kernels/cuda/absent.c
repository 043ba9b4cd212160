/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the CUDA kernels in builds without nvcc: an empty table.
 */
#include "kernels/cuda/attention/rows_of_tensors.h"
#include "kernels/cuda/rows/elementwise.h"
#include "kernels/cuda/table.h"

#include <stddef.h>

const LhCudaKernel *const lh_cuda_kernels[LH_KERNELS_COUNT] = { NULL };

enum lh_status
lh_cuda_sum(unsigned char *const *terms, uint32_t count, unsigned char *sum, uint64_t elements,
            enum lh_storage storage, void *stream)
{
    (void)terms;
    (void)count;
    (void)sum;
    (void)elements;
    (void)storage;
    (void)stream;
    return LH_STATUS_UNSUPPORTED;
}

enum lh_status
lh_cuda_merge_block(const LhCall *call, void *stream)
{
    (void)call;
    (void)stream;
    return LH_STATUS_UNSUPPORTED;
}

bool
lh_cuda_present(void)
{
    return false;
}
