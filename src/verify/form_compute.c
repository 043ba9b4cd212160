/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Form of compute ops: operands have the number, kinds, types and sizes that the kernel's row
 * states, and none overlaps what is written.
 */
#include "verify/verify_private.h"

#include "program/work.h"

static bool
check_mask(LhProof *proof, uint32_t g, const LhKernelArgs *args)
{
    if (args->mask > LH_MASK_POSITIONS)
        return MALFORMED(g, -1, "has an unknown mask (%u)", args->mask);
    if (args->mask == LH_MASK_CAUSAL && args->shift != 0 && args->shift != -1)
        return MALFORMED(g, -1, "has a causal mask shifted by %d; kernels have 0 and -1",
                         args->shift);
    if (args->mask == LH_MASK_POSITIONS && (args->rule == NULL || args->stride == 0))
        return MALFORMED(g, -1, "has a mask by positions without %s",
                         args->rule == NULL ? "a rule" : "a stride");
    return true;
}

static bool
check_reversed(LhProof *proof, uint32_t g, const LhOp *op)
{
    const LhKernelId kernel = op->compute.kernel;

    if (!op->compute.args.reversed || kernel == LH_KERNEL_ID_copy || kernel == LH_KERNEL_ID_cast ||
        kernel == LH_KERNEL_ID_add_to_fp32)
        return true;
    return MALFORMED(g, -1, "reverses parts, which %s does not support", lh_proof_kernel(op)->name);
}

/* Checks the shape a kernel is called for: one slice of the heads, as large as those of all
 * operands. */
static bool
check_shape(LhProof *proof, uint32_t g, const LhOp *op)
{
    const LhKernelArgs *args = &op->compute.args;
    const LhProgram *program = proof->program;
    const LhAttention *attention = &program->params.attention;
    const uint32_t heads = attention->heads / lh_program_slices(program, LH_TENSOR_Q);
    const uint32_t groups = attention->groups / lh_program_slices(program, LH_TENSOR_KV);

    if (args->batch != attention->batch || args->heads != heads || args->groups != groups)
        return MALFORMED(
            g, -1, "is called for batch %u, %u heads, %u groups, but %s has %u, %u, %u",
            args->batch, args->heads, args->groups,
            program->head_slices > 1 ? "a slice" : "the program", attention->batch, heads, groups);
    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhSlot *slot = &program->slots[op->compute.regions[i].slot];

        if (slot->head_dim != args->head_dim)
            return MALFORMED(g, op->compute.regions[i].slot,
                             "is called for head dimension %u, but slot %s has %u", args->head_dim,
                             slot->name, slot->head_dim);
    }
    return true;
}

/* Tensors of the model may be split into pieces and padded so that all ranks have the same
 * amount, so they may hold more than a call takes. */
static bool
holds_elements(const LhProof *proof, const LhRegion *region, uint64_t elements)
{
    const LhSlot *slot = &proof->program->slots[region->slot];
    const uint64_t bytes = lh_region_bytes(proof->program, *region);

    return lh_tensor_is_of_model(slot->kind) ? elements <= bytes / lh_slot_element_bytes(slot)
                                             : bytes == elements * lh_slot_element_bytes(slot);
}

/* Checks operand sizes against the number of elements that a kernel takes. */
static bool
check_elements(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];
        const LhSlot *slot = &proof->program->slots[region->slot];
        const uint64_t elements = kernel->operand_elements(&op->compute.args, i);

        if (!holds_elements(proof, region, elements))
            return MALFORMED(g, region->slot,
                             "takes %" G_GUINT64_FORMAT " elements as its operand %s, but %u parts "
                             "of slot %s have %" G_GUINT64_FORMAT " bytes",
                             elements, kernel->operands[i].name, region->count, slot->name,
                             lh_region_bytes(proof->program, *region));
    }
    return true;
}

/* The required element type of operand @i, in a call for @activation. */
static LhDtype
wanted_dtype(const LhProof *proof, const LhOp *op, uint32_t i, LhDtype activation)
{
    const LhSlot *slots = proof->program->slots;
    const LhDtype found = slots[op->compute.regions[i].slot].dtype;
    const LhDtype first = slots[op->compute.regions[0].slot].dtype;

    switch (lh_proof_kernel(op)->operands[i].element) {
    case LH_ELEMENT_FP32:
        return LH_DTYPE_FP32;
    case LH_ELEMENT_INT8:
        return LH_DTYPE_INT8;
    case LH_ELEMENT_EITHER:
        return found == LH_DTYPE_FP32 ? LH_DTYPE_FP32 : activation;
    case LH_ELEMENT_OTHER:
        return first == LH_DTYPE_FP32 ? activation : LH_DTYPE_FP32;
    case LH_ELEMENT_ACTIVATION:
    default:
        return activation;
    }
}

/* Kernels for any kind of tensor work on heads of whole rows, and on k and v together; not on
 * statistics, alone or with o. Those of linear attention move states, or their gradients. Copies
 * between device and host take everything. */
static bool
suits_any(const LhKernel *kernel, LhTensorKind kind)
{
    const uint32_t states = 1u << LH_TENSOR_STATE | 1u << LH_TENSOR_DSTATE;
    const uint32_t suitable = kernel->args == LH_ARGS_COPY ? UINT32_MAX
                              : kernel->linear
                                  ? states
                                  : 1u << LH_TENSOR_Q | 1u << LH_TENSOR_KV | 1u << LH_TENSOR_O |
                                        1u << LH_TENSOR_DO | 1u << LH_TENSOR_DQ |
                                        1u << LH_TENSOR_DKV | states;

    return (suitable >> kind & 1) != 0;
}

/* Checks operand kinds and element types against the kernel's row. */
static bool
check_operands(LhProof *proof, uint32_t g, uint32_t operands)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    const LhDtype activation = lh_op_activation(proof->program, op);
    const LhSlot *any = NULL; /* the first operand of any kind */

    for (uint32_t i = 0; i < operands; i++) {
        const LhOperand *operand = &kernel->operands[i];
        const uint16_t index = op->compute.regions[i].slot;
        const LhSlot *slot = &proof->program->slots[index];
        const LhDtype dtype = wanted_dtype(proof, op, i, activation);

        if (operand->kind != LH_TENSOR_ANY && slot->kind != operand->kind)
            return MALFORMED(g, index, "takes slot %s (%s) as its operand %s (%s)", slot->name,
                             lh_tensor_names[slot->kind], operand->name,
                             lh_tensor_names[operand->kind]);
        if (operand->kind == LH_TENSOR_ANY && !suits_any(kernel, slot->kind))
            return MALFORMED(
                g, index, "takes slot %s (%s) as its operand %s, which does not support that kind",
                slot->name, lh_tensor_names[slot->kind], operand->name);
        if (operand->kind == LH_TENSOR_ANY && any != NULL && slot->kind != any->kind)
            return MALFORMED(g, index,
                             "takes slot %s (%s) as its operand %s beside slot %s (%s): they must "
                             "be of one kind",
                             slot->name, lh_tensor_names[slot->kind], operand->name, any->name,
                             lh_tensor_names[any->kind]);
        if (slot->dtype != dtype)
            return MALFORMED(g, index, "takes slot %s (%s) as its operand %s (%s)", slot->name,
                             lh_dtype_names[slot->dtype], operand->name, lh_dtype_names[dtype]);
        if (operand->kind == LH_TENSOR_ANY && any == NULL)
            any = slot;
    }
    return true;
}

static bool
find_shared(LhProof *proof, uint32_t g, uint32_t i, uint32_t k)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    g_autofree char *first = lh_region_text(proof->program, &op->compute.regions[i]);
    g_autofree char *second = lh_region_text(proof->program, &op->compute.regions[k]);

    return MALFORMED(g, op->compute.regions[i].slot,
                     "writes its operand %s to slot %s, which overlaps slot %s, its operand %s: "
                     "they must not share a part",
                     kernel->operands[i].name, first, second, kernel->operands[k].name);
}

/* Checks that written operands do not overlap others, unless the kernel works in place. */
static bool
check_operands_apart(LhProof *proof, uint32_t g, uint32_t operands)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);

    for (uint32_t i = 0; i < operands; i++) {
        const LhOperandAccess access = kernel->operands[i].access;

        if (access != LH_OPERAND_WRITE && access != LH_OPERAND_UPDATE)
            continue;
        for (uint32_t k = 0; k < operands; k++) {
            const LhRegion *written = &op->compute.regions[i], *other = &op->compute.regions[k];

            if (i == k || !lh_regions_overlap(written, other) ||
                (i == kernel->in_place.written && k == kernel->in_place.read &&
                 written->part == other->part && written->count == other->count))
                continue;
            return find_shared(proof, g, i, k);
        }
    }
    return true;
}

bool
lh_form_check_compute(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel;
    uint32_t operands = 0;

    if ((uint32_t)op->compute.kernel >= (uint32_t)LH_KERNELS_COUNT)
        return MALFORMED(g, -1, "calls an unknown kernel");
    kernel = lh_proof_kernel(op);
    while (kernel->operands[operands].access != LH_OPERAND_END)
        operands++;
    if (op->compute.regions_count != operands)
        return MALFORMED(g, -1, "has %u operands; %s takes %u", op->compute.regions_count,
                         kernel->name, operands);
    for (uint32_t i = 0; i < operands; i++) {
        const LhOperandAccess access = kernel->operands[i].access;

        if (!(access == LH_OPERAND_READ ? lh_form_check_region
              : access == LH_OPERAND_GIVEN
                  ? lh_form_check_given
                  : lh_form_check_target)(proof, g, &op->compute.regions[i]) ||
            !lh_form_check_whole(proof, g, &op->compute.regions[i]))
            return false;
    }
    if (!check_operands(proof, g, operands) || !check_operands_apart(proof, g, operands) ||
        !lh_form_check_memories(proof, g))
        return false;
    /* Embedded programs are proven separately. */
    if (kernel->args == LH_ARGS_NONE || lh_program_embeds(proof->program, op))
        return true;
    if (kernel->args == LH_ARGS_COPY)
        return lh_form_check_copy(proof, g);
    if (kernel->args != LH_ARGS_ATTENTION)
        return check_elements(proof, g) && lh_form_check_layer_args(proof, g);
    return check_mask(proof, g, &op->compute.args) && check_reversed(proof, g, op) &&
           check_shape(proof, g, op);
}
