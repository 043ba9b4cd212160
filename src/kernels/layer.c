/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/layer.h"

#define FP32_BYTES 4U

/* Bytes of the call by the arguments' bytes per element; 0 if they give none. */
static uint64_t
stated_bytes(const LhKernel *kernel, const LhKernelArgs *a)
{
    const LhArgsRow *row = &lh_args_rows[kernel->args];
    const uint64_t each = lh_args_traffic(kernel->args, a);

    if (each == 0)
        return 0;
    return each * (row->traffic_elements != NULL
                       ? row->traffic_elements(a)
                       : kernel->operand_elements(a, LH_KERNEL_OPERANDS_MAX));
}

static uint32_t
operand_bytes(const LhKernel *kernel, unsigned operand, uint32_t element_bytes)
{
    switch (kernel->operands[operand].element) {
    case LH_ELEMENT_FP32:
    case LH_ELEMENT_OTHER:
        return FP32_BYTES;
    case LH_ELEMENT_INT8:
        return 1;
    default:
        return element_bytes;
    }
}

uint64_t
lh_layer_bytes(const LhKernel *kernel, const LhKernelArgs *args, uint32_t element_bytes)
{
    const uint64_t stated = stated_bytes(kernel, args);
    uint64_t bytes = 0;

    if (stated > 0)
        return stated;
    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
        const bool twice = kernel->operands[i].access == LH_OPERAND_UPDATE &&
                           !lh_operand_is_overwritten(kernel, args, i);

        bytes += kernel->operand_elements(args, i) * operand_bytes(kernel, i, element_bytes) *
                 (twice ? 2 : 1);
    }
    return bytes;
}
