/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between device memory and host memory, over the link between them. They use no SMs: a
 * device's copy engines run them.
 */
#include "kernels/kernel.h"

/* Device memory is read or written once. What the call's time adds for memory without a slot is in
 * `beside`. */
static uint64_t
copied_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    (void)element_bytes;
    return a->copy.bytes + a->copy.beside;
}

#define COPY(word, what, from, to)                                                                 \
    const LhKernel lh_kernel_##word = {                                                            \
        .name = #word,                                                                             \
        .summary = what,                                                                           \
        .args = LH_ARGS_COPY,                                                                      \
        .effect = LH_EFFECT_DERIVE,                                                                \
        .cost = LH_COST_HOST_LINK,                                                                 \
        .operands = { { from, LH_OPERAND_READ, LH_TENSOR_ANY, LH_ELEMENT_EITHER },                 \
                      { to, LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_EITHER },                  \
                      { .access = LH_OPERAND_END } },                                              \
        .flops = lh_no_flops,                                                                      \
        .memory_bytes = copied_bytes,                                                              \
    };

COPY(to_host, "copies a tensor from device memory to host memory", "device", "host")
COPY(from_host, "copies a tensor from host memory to device memory", "host", "device")
