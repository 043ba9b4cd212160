/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last row of each sequence of a part, of which alone a forward pass needs logits. x is
 * [sequences][count][width] in one part.
 */
#include "kernels/layer.h"

static uint64_t
last_rows_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? a->rows.count * lh_rows_elements(a) : lh_rows_elements(a);
}

/* Only the last rows are read. */
static uint64_t
last_rows_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t each = a->rows.traffic > 0 ? a->rows.traffic : 2 * element_bytes;

    return each * lh_rows_elements(a);
}

const LhKernel lh_kernel_last_rows = {
    .name = "last_rows",
    .summary = "y = the last of the `count` rows of each sequence of x",
    .args = LH_ARGS_ROWS,
    .effect = LH_EFFECT_LAYER,
    .cost = LH_COST_MEMORY,
    .operands = { LH_HIDDEN("x", READ), LH_HIDDEN("y", WRITE), LH_OPERANDS_END },
    .flops = lh_no_flops,
    .memory_bytes = last_rows_bytes,
    .operand_elements = last_rows_elements,
};
