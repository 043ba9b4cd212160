/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Form of calls outside attention beyond the sizes of their operands: how rows and heads are split.
 * A call that passes here can be run by every machine's kernel.
 */
#include "verify/verify_private.h"

#include "kernels/layer.h"

/* Checks that a part of every operand holds whole elements. */
static bool
check_whole_elements(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];
        const LhSlot *slot = &proof->program->slots[region->slot];

        if (slot->part_bytes % lh_slot_element_bytes(slot) != 0)
            return MALFORMED(g, region->slot,
                             "takes slot %s, whose parts of %" G_GUINT64_FORMAT
                             " bytes are not a whole number of elements",
                             slot->name, slot->part_bytes);
    }
    return true;
}

/* Checks parts of a tensor by heads: equally many slices of each segment, of whole heads. */
static bool
check_region_slices(LhProof *proof, uint32_t g, const LhRegion *region, uint64_t segments,
                    uint64_t width)
{
    const LhSlot *slot = &proof->program->slots[region->slot];
    const uint64_t slices = region->count / segments;

    if (region->count % segments == 0 && width % slices == 0 &&
        width / slices % slot->head_dim == 0)
        return true;
    return MALFORMED(g, region->slot,
                     "takes %u parts of slot %s, which %" G_GUINT64_FORMAT
                     " segments of heads with %" G_GUINT64_FORMAT " elements cannot be cut into",
                     region->count, slot->name, segments, width);
}

/* Checks that no row chooses an expert twice. */
static bool
check_expert_choices(LhProof *proof, uint32_t g)
{
    const LhKernelArgs *a = &proof->ops[g].compute.args;

    return (a->experts.rows > 0 && a->experts.choices > 0 &&
            a->experts.choices <= a->experts.experts) ||
           MALFORMED(g, -1, "has %u choices for each of %" G_GUINT64_FORMAT " rows; experts: %u",
                     a->experts.choices, a->experts.rows, a->experts.experts);
}

static bool
check_layout(LhProof *proof, uint32_t g, const LhHeadsLayout *layout, uint64_t rows)
{
    if (layout->batch > 0 && layout->members > 0 &&
        rows % ((uint64_t)layout->batch * layout->members) == 0)
        return true;
    return MALFORMED(g, -1,
                     "has %" G_GUINT64_FORMAT
                     " rows, which do not divide among %u sequences of %u members",
                     rows, layout->batch, layout->members);
}

static bool
check_product(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    const LhKernelArgs *a = &op->compute.args;
    const LhHeadsLayout *layout = &a->product.layout;
    const LhProductResult result = kernel->product;
    const LhRegion *x = &op->compute.regions[result == LH_PRODUCT_DX ? 2 : 0];
    const LhRegion *y = &op->compute.regions[result == LH_PRODUCT_DX   ? 0
                                             : result == LH_PRODUCT_DW ? 1
                                                                       : 2];

    if (!lh_product_is_of_experts(kernel) && a->product.experts > 1)
        return MALFORMED(g, -1, "has %u experts, but no operand that assigns rows to experts",
                         a->product.experts);
    if (!lh_product_is_by_heads(kernel))
        return true;
    if (!check_layout(proof, g, layout, a->product.m))
        return false;
    if (y->count % layout->members != 0 || a->product.m % ((uint64_t)layout->batch * y->count) != 0)
        return MALFORMED(g, y->slot, "takes %u parts of slot %s for %u members", y->count,
                         proof->program->slots[y->slot].name, layout->members);
    return check_region_slices(proof, g, x, y->count / layout->members, a->product.k);
}

static bool
check_row_arguments(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const LhKernelArgs *a = &op->compute.args;
    bool counts = false, has_tokens = false;

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        counts |= lh_proof_kernel(op)->operands[i].kind == LH_TENSOR_NUMBERS;
        has_tokens |= lh_proof_kernel(op)->operands[i].kind == LH_TENSOR_TOKENS;
    }
    if (a->rows.rows == 0 || a->rows.width == 0)
        return MALFORMED(g, -1, "is called for zero rows, or for rows of width zero");
    if (op->compute.kernel == LH_KERNEL_ID_last_rows &&
        (a->rows.count == 0 || op->compute.regions[0].count != 1))
        return MALFORMED(g, op->compute.regions[0].slot,
                         "takes the last of %" G_GUINT64_FORMAT
                         " rows of each sequence, from %u parts; needed: 1 part with rows",
                         a->rows.count, op->compute.regions[0].count);
    if (!has_tokens)
        return true;
    /* The last rank's rows or columns may extend past the end; no token is there. */
    if (a->rows.first >= a->rows.vocabulary)
        return MALFORMED(g, -1,
                         "is called for tokens from %" G_GUINT64_FORMAT
                         " on, beyond the vocabulary of %" G_GUINT64_FORMAT " tokens",
                         a->rows.first, a->rows.vocabulary);
    if (counts && (a->rows.tokens == 0 || a->rows.first % a->rows.width != 0))
        return MALFORMED(g, -1,
                         "is a loss over %" G_GUINT64_FORMAT " tokens and %" G_GUINT64_FORMAT
                         " columns from %" G_GUINT64_FORMAT " on",
                         a->rows.tokens, a->rows.width, a->rows.first);
    return true;
}

/* Checks one segment: outside attention its rows have one part per member. */
static bool
check_to_heads(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const LhKernelArgs *a = &op->compute.args;
    const uint64_t d = a->to_heads.head_dim;

    if (d == 0 || a->to_heads.heads == 0 || a->to_heads.groups == 0 || a->to_heads.rows == 0 ||
        (d % 2 != 0 && a->to_heads.base != 0))
        return MALFORMED(g, -1, "is called for heads of %" G_GUINT64_FORMAT " elements%s", d,
                         a->to_heads.base != 0 ? ", which cannot be rotated" : "");
    if (!check_layout(proof, g, &a->to_heads.layout, a->to_heads.rows * a->to_heads.layout.batch))
        return false;
    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];
        const LhSlot *slot = &proof->program->slots[region->slot];

        if (slot->kind == LH_TENSOR_HIDDEN && region->count != a->to_heads.layout.members)
            return MALFORMED(g, region->slot, "takes %u parts of slot %s for %u members",
                             region->count, slot->name, a->to_heads.layout.members);
        if (slot->kind != LH_TENSOR_HIDDEN && slot->head_dim != d)
            return MALFORMED(g, region->slot,
                             "is called for head dimension %" G_GUINT64_FORMAT
                             ", but slot %s has %u",
                             d, slot->name, slot->head_dim);
        if (slot->kind != LH_TENSOR_HIDDEN &&
            !check_region_slices(
                proof, g, region, 1,
                (lh_slot_has_halves(slot) ? a->to_heads.groups : a->to_heads.heads) * d))
            return false;
    }
    return true;
}

/* Checks the moments: each part has the first moments of its parameters, then the second ones.
 * 8-bit moments are in one part. */
static bool
check_moments(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const uint64_t count = op->compute.args.optimizer.count;

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];

        if (lh_proof_kernel(op)->operands[i].element == LH_ELEMENT_INT8 &&
            (region->count != 1 || op->compute.regions[i + 1].count != 1))
            return MALFORMED(g, region->slot, "takes %u parts of slot %s, whose blocks are in one",
                             region->count, proof->program->slots[region->slot].name);
        if (lh_proof_kernel(op)->operands[i].kind == LH_TENSOR_MOMENTS &&
            count % region->count != 0)
            return MALFORMED(g, region->slot,
                             "takes %u parts of slot %s, which the moments of %" G_GUINT64_FORMAT
                             " parameters cannot be cut into",
                             region->count, proof->program->slots[region->slot].name, count);
    }
    return true;
}

/* Checks that blocks and slices of a weight divide it evenly, and that slices are of whole parts.
 */
static bool
check_muon(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const LhKernelArgs *a = &op->compute.args;
    const uint32_t experts = MAX(a->muon.experts, 1), halves = MAX(a->muon.halves, 1);
    const uint32_t slices = MAX(a->muon.slices, 1), replicas = MAX(a->muon.replicas, 1);
    const uint64_t rows = a->muon.rows / experts, columns = a->muon.width / halves;
    const uint32_t cuts = lh_muon_cuts(a);

    if (a->muon.rows % experts != 0 || a->muon.width % halves != 0 || rows == 0 || columns == 0 ||
        (slices > 1 && slices % replicas != 0) || (a->muon.by_rows ? rows : columns) % cuts != 0 ||
        a->muon.slice >= cuts)
        return MALFORMED(g, -1,
                         "has %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
                         " elements, which %u x %u matrices of %u slices do not divide",
                         a->muon.rows, a->muon.width, experts, halves, slices);
    if (op->compute.kernel == LH_KERNEL_ID_muon_join && op->compute.regions[0].count % slices != 0)
        return MALFORMED(g, op->compute.regions[0].slot, "takes %u parts for %u slices",
                         op->compute.regions[0].count, slices);
    return true;
}

bool
lh_form_check_layer_args(LhProof *proof, uint32_t g)
{
    const LhKernel *kernel = lh_proof_kernel(&proof->ops[g]);

    if (!check_whole_elements(proof, g))
        return false;
    switch (kernel->args) {
    case LH_ARGS_PRODUCT:
        return check_product(proof, g);
    case LH_ARGS_ROWS:
        return check_row_arguments(proof, g);
    case LH_ARGS_HEADS:
        return check_to_heads(proof, g);
    case LH_ARGS_EXPERTS:
        return check_expert_choices(proof, g);
    case LH_ARGS_OPTIMIZER:
        return check_moments(proof, g);
    case LH_ARGS_MUON:
        return check_muon(proof, g);
    default:
        return true;
    }
}
