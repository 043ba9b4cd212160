/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-entropy over a vocabulary that may be divided among ranks: each has `width` columns of the
 * logits, from token `first` on. loss_stats writes three numbers per row. From those of all ranks,
 * loss computes the gradient of the rank's logits and the loss itself. Targets beyond the
 * vocabulary are ignored: their rows have no loss and no gradient.
 */
#include "kernels/layer.h"

/* Operands: logits, tokens, numbers of this rank. */
static uint64_t
stats_elements(const LhKernelArgs *a, unsigned operand)
{
    return operand == 0   ? lh_rows_elements(a)
           : operand == 1 ? a->rows.rows
                          : LH_LOSS_STATS * a->rows.rows;
}

/* Operands: logits, tokens, numbers of all ranks, dlogits, value. */
static uint64_t
loss_elements(const LhKernelArgs *a, unsigned operand)
{
    switch (operand) {
    case 1:
        return a->rows.rows;
    case 2:
        return LH_LOSS_STATS * lh_loss_members(a) * a->rows.rows;
    case 4:
        return 1;
    default:
        return lh_rows_elements(a);
    }
}

/* Per element: x - max, its exponential, the sum. */
static uint64_t
stats_flops(const LhKernelArgs *a)
{
    return 3 * lh_rows_elements(a);
}

/*
 * Per element: x - max, its exponential, two quotients (by sum and tokens); plus the merge of a
 * row's numbers.
 */
static uint64_t
loss_flops(const LhKernelArgs *a)
{
    return 4 * lh_rows_elements(a) + (4 * lh_loss_members(a) + 4) * a->rows.rows;
}

LH_LAYER_BYTES(loss_stats)
LH_LAYER_BYTES(loss)

const LhKernel lh_kernel_loss_stats = {
    .name = "loss_stats",
    .summary = "maximum, sum of exponentials and target's logit of each row of logits",
    .args = LH_ARGS_ROWS,
    .effect = LH_EFFECT_LAYER,
    .cost = LH_COST_MEMORY,
    .operands = { LH_HIDDEN("logits", READ), LH_FP32("tokens", READ, TOKENS),
                  LH_FP32("numbers", WRITE, NUMBERS), LH_OPERANDS_END },
    .flops = stats_flops,
    .memory_bytes = loss_stats_bytes,
    .operand_elements = stats_elements,
};

const LhKernel lh_kernel_loss = {
    .name = "loss",
    .summary = "dlogits = (softmax - target) / tokens; value += the rows' share of the loss",
    .args = LH_ARGS_ROWS,
    .effect = LH_EFFECT_LAYER,
    .cost = LH_COST_MEMORY,
    .operands = { LH_HIDDEN("logits", READ), LH_FP32("tokens", READ, TOKENS),
                  LH_FP32("numbers", READ, NUMBERS), LH_HIDDEN("dlogits", WRITE),
                  LH_FP32("value", UPDATE, NUMBERS), LH_OPERANDS_END },
    .in_place = { .read = 0, .written = 3 },
    .flops = loss_flops,
    .memory_bytes = loss_bytes,
    .operand_elements = loss_elements,
};
