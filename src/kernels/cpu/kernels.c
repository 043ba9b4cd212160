/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the CPU's kernels, from the list in src/kernels/meson.build.
 */
#include "kernels/cpu/kernels.h"

#include <stddef.h>

#define LH_KERNEL(id) extern const LhCpuKernel lh_cpu_kernel_##id;
#include "kernels.def"
#undef LH_KERNEL

const LhCpuKernel *const lh_cpu_kernels[LH_KERNELS_COUNT] = {
#define LH_KERNEL(id) [LH_KERNEL_ID_##id] = &lh_cpu_kernel_##id,
#include "kernels.def"
#undef LH_KERNEL
};

uint64_t
lh_cpu_scratch_bytes(LhKernelId kernel, const LhKernelArgs *args)
{
    uint64_t (*const scratch_bytes)(const LhKernelArgs *) = lh_cpu_kernels[kernel]->scratch_bytes;

    return scratch_bytes == NULL ? 0 : scratch_bytes(args);
}
