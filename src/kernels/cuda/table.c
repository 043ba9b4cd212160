/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the CUDA kernels, from the list in meson.build.
 */
#include "kernels/cuda/table.h"

#define LH_CUDA_KERNEL(id) extern const LhCudaKernel lh_cuda_kernel_##id;
LH_CUDA_KERNELS
#undef LH_CUDA_KERNEL

const LhCudaKernel *const lh_cuda_kernels[LH_KERNELS_COUNT] = {
#define LH_CUDA_KERNEL(id) [LH_KERNEL_ID_##id] = &lh_cuda_kernel_##id,
    LH_CUDA_KERNELS
#undef LH_CUDA_KERNEL
};

bool
lh_cuda_present(void)
{
    return true;
}
