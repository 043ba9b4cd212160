/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernels, from the list in meson.build.
 */
#include "kernels/kernel.h"

#include <string.h>

#define LH_KERNEL(id) extern const LhKernel lh_kernel_##id;
#include "kernels.def"
#undef LH_KERNEL

const LhKernel *const lh_kernels[LH_KERNELS_COUNT] = {
#define LH_KERNEL(id) [LH_KERNEL_ID_##id] = &lh_kernel_##id,
#include "kernels.def"
#undef LH_KERNEL
};

LhKernelId
lh_kernel_find(const char *name)
{
    for (unsigned i = 0; i < LH_KERNELS_COUNT; i++) {
        if (strcmp(lh_kernels[i]->name, name) == 0)
            return (LhKernelId)i;
    }
    return LH_KERNELS_COUNT;
}
