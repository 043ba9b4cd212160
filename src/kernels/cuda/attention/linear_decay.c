/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/attention/linear_decay.h"

#include <math.h>

float
lh_cuda_log2_decay(const LhKernelArgs *a)
{
    return a->decay <= 0 || a->decay >= 1 ? 0 : (float)log2(a->decay);
}

LhCudaWeights
lh_cuda_query_weights(const LhKernelArgs *a)
{
    return (LhCudaWeights){ .from = 1, .by = lh_cuda_log2_decay(a) };
}

LhCudaWeights
lh_cuda_key_weights(const LhKernelArgs *a, uint64_t n)
{
    return (LhCudaWeights){ .falls = true, .from = (int32_t)n - 1, .by = lh_cuda_log2_decay(a) };
}
