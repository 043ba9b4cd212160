/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embedding: every token reads its row of a table. A rank may hold only `count` rows of the table,
 * from `first` on; other tokens get rows of zeros, and the sum over ranks is the embedding.
 */
#include "kernels/layer.h"

static uint64_t
table_elements(const LhKernelArgs *a)
{
    return a->rows.count * a->rows.width;
}

static uint64_t
embed_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? a->rows.rows : operand == 1 ? table_elements(a) : lh_rows_elements(a);
}

static uint64_t
embed_bwd_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0 ? a->rows.rows : operand == 1 ? lh_rows_elements(a) : table_elements(a);
}

/* Forward traffic: a lookup reads as many elements as it writes, however large the table is. */
static uint64_t
forward_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t rows = 2 * lh_rows_elements(a) * element_bytes;

    return a->rows.traffic > 0 ? a->rows.traffic * lh_rows_elements(a) : 4 * a->rows.rows + rows;
}

/* Backward traffic: dy is read, the rows of dw are read and written; a new gradient is zeroed. */
static uint64_t
backward_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t zeros = a->first ? table_elements(a) * element_bytes : 0;
    const uint64_t rows = 3 * lh_rows_elements(a) * element_bytes;

    if (a->rows.traffic > 0)
        return a->rows.traffic * lh_rows_elements(a);
    return 4 * a->rows.rows + rows + zeros;
}

const LhKernel lh_kernel_embed = {
    .name = "embed",
    .summary = "y = the tokens' rows of the table w",
    .args = LH_ARGS_ROWS,
    .effect = LH_EFFECT_LAYER,
    .cost = LH_COST_MEMORY,
    .operands = { LH_FP32("tokens", READ, TOKENS), LH_OF_WEIGHTS("w", READ, WEIGHT),
                  LH_HIDDEN("y", WRITE), LH_OPERANDS_END },
    .flops = lh_no_flops,
    .memory_bytes = forward_bytes,
    .operand_elements = embed_elements,
};

const LhKernel lh_kernel_embed_bwd = {
    .name = "embed_bwd",
    .summary = "adds the rows of dy to the tokens' rows of dw",
    .args = LH_ARGS_ROWS,
    .effect = LH_EFFECT_LAYER,
    .cost = LH_COST_MEMORY,
    .operands = { LH_FP32("tokens", READ, TOKENS), LH_HIDDEN("dy", READ),
                  LH_OF_WEIGHTS("dw", UPDATE, GRADIENT), LH_OPERANDS_END },
    .flops = lh_rows_elements,
    .memory_bytes = backward_bytes,
    .operand_elements = embed_bwd_elements,
};
