/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/product/product_mma.cuh"

enum lh_status
lh_cuda_multiply_bf16(const LhCudaProduct *p, void *stream)
{
    return lh::multiply_mma<__nv_bfloat16>(*p, stream);
}
