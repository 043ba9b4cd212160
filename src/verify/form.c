/*
 * The verifier's first stage: everything that an op names exists, and comes in the right number and
 * of the right kind.
 * Later stages index arrays by these names without looking again, so no program, however broken,
 * can make them crash.
 */
#include "verify/proof.h"

#include "program/work.h"

#include <string.h>

#define DECLARATION(...)                                                                           \
    (lh_proof_find(proof, LH_FINDING_MALFORMED, (LhRealPath){ LH_NONE, LH_NONE, -1, LH_NONE },     \
                   __VA_ARGS__),                                                                   \
     false)

static bool
check_placement(LhProof *proof)
{
    const LhProgram *program = proof->program;
    const LhPlacement *placement = &program->placement;
    const LhAttention *attention = &program->params.attention;
    uint64_t segments;

    if (program->params.ranks == 0 || lh_program_ranks(program) > LH_VERIFY_RANKS_MAX)
        return DECLARATION("has %u ranks; the verifier takes 1 to %u", lh_program_ranks(program),
                           LH_VERIFY_RANKS_MAX);
    if ((uint32_t)placement->kind > LH_PLACE_HEADS || placement->ranks != program->params.ranks ||
        placement->seq_length != attention->seq_length)
        return DECLARATION(
            "has a placement of other ranks or another length than its parameters say");
    segments = lh_placement_segments(placement);
    /* How ranks of a step hold tokens is said by the programs that it embeds. */
    if (segments == 0 || placement->seq_length == 0 ||
        (program->step == NULL && placement->seq_length % segments != 0))
        return DECLARATION("cannot cut %" G_GUINT64_FORMAT " tokens into %" G_GUINT64_FORMAT
                           " equal segments",
                           placement->seq_length, segments);
    if (attention->batch == 0 || attention->heads == 0 || attention->groups == 0 ||
        attention->head_dim == 0)
        return DECLARATION("has an attention shape with a zero in it");
    if (program->streams_count == 0 || program->streams_count > LH_STREAMS_MAX)
        return DECLARATION("has %u streams; 1 to %d are possible", program->streams_count,
                           LH_STREAMS_MAX);
    return true;
}

/* The heads can be cut as the program says, and a kernel is called with whole groups of them. */
static bool
check_slices(LhProof *proof)
{
    const LhProgram *program = proof->program;
    const LhAttention *attention = &program->params.attention;
    const uint32_t slices = lh_program_slices(program, LH_TENSOR_Q);
    const uint32_t kv_slices = lh_program_slices(program, LH_TENSOR_KV);

    if (attention->heads % slices != 0 || attention->groups % kv_slices != 0)
        return DECLARATION("cannot cut %u query heads into %u slices and %u key-value heads into "
                           "%u",
                           attention->heads, slices, attention->groups, kv_slices);
    if (slices % kv_slices != 0)
        return DECLARATION("has %u slices of query heads, which %u of key-value heads cannot "
                           "share evenly",
                           slices, kv_slices);
    if (slices != kv_slices && attention->groups != kv_slices)
        return DECLARATION("has %u slices of query heads for %u of key-value heads; slices that "
                           "are shared must have one key-value head, not %u",
                           slices, kv_slices, attention->groups / kv_slices);
    return true;
}

/* Bytes that a part of @slot needs: it holds one segment of one slice. 0: the size does not follow
 * from the attention's shape. */
static uint64_t
part_bytes(const LhProgram *program, const LhSlot *slot)
{
    const LhAttention *a = &program->params.attention;
    const uint64_t tokens =
        program->placement.seq_length / lh_placement_segments(&program->placement) * a->batch;
    const uint64_t slices = lh_program_slices(program, slot->kind);
    const uint64_t heads = a->heads / slices;
    const uint64_t row = (uint64_t)slot->head_dim * lh_slot_element_bytes(slot);
    const uint64_t statistic = lh_dtype_bytes(LH_DTYPE_FP32);

    switch (slot->kind) {
    case LH_TENSOR_Q:
    case LH_TENSOR_O:
    case LH_TENSOR_DO:
    case LH_TENSOR_DQ:
        return tokens * heads * row;
    case LH_TENSOR_KV:
    case LH_TENSOR_DKV:
        return 2 * tokens * (a->groups / slices) * row;
    case LH_TENSOR_K:
    case LH_TENSOR_V:
    case LH_TENSOR_DK:
    case LH_TENSOR_DV:
        return tokens * (a->groups / slices) * row;
    case LH_TENSOR_SCORES:
    case LH_TENSOR_PROBS:
    case LH_TENSOR_DSCORES:
        return tokens * heads * (tokens / a->batch) * lh_slot_element_bytes(slot);
    case LH_TENSOR_ACC:
        return tokens * heads * (row + 2 * statistic);
    case LH_TENSOR_OUT:
        return tokens * heads * (row + statistic);
    case LH_TENSOR_LSE:
    case LH_TENSOR_DELTA:
        return tokens * heads * statistic;
    case LH_TENSOR_STATE:
    case LH_TENSOR_DSTATE:
        return (uint64_t)a->batch * heads * slot->head_dim * row;
    default:
        return 0;
    }
}

static bool
check_slot_size(LhProof *proof, const LhSlot *slot)
{
    const uint64_t bytes = part_bytes(proof->program, slot);

    if (proof->program->modules_count > 0 || bytes == 0 || slot->part_bytes == bytes)
        return true;
    return DECLARATION("has %" G_GUINT64_FORMAT " bytes in a part of slot %s; a segment of %s in "
                       "elements of %u bytes takes %" G_GUINT64_FORMAT,
                       slot->part_bytes, slot->name, lh_tensor_names[slot->kind],
                       lh_slot_element_bytes(slot), bytes);
}

static bool
is_scores(LhTensorKind kind)
{
    return kind == LH_TENSOR_SCORES || kind == LH_TENSOR_PROBS || kind == LH_TENSOR_DSCORES;
}

/* A rank's inputs and outputs are all of its own, and no more; of what no size is known of, there
 * may be less. What is the model's belongs to no segment, and scores are nobody's own. */
static bool
check_slot_parts(LhProof *proof, const LhSlot *slot)
{
    const LhProgram *program = proof->program;
    const uint32_t parts = lh_slot_parts(program, slot);
    const bool sized = part_bytes(program, slot) != 0;

    if (slot->role != LH_SLOT_TEMP && is_scores(slot->kind))
        return DECLARATION("has %s as its input or output slot %s", lh_tensor_names[slot->kind],
                           slot->name);
    if (slot->role == LH_SLOT_TEMP || lh_tensor_is_of_model(slot->kind) || slot->parts == parts ||
        (!sized && slot->parts < parts))
        return true;
    return DECLARATION(
        "has %u parts in its input or output slot %s, but a rank holds %u segments%s", slot->parts,
        slot->name, parts,
        parts > lh_placement_parts(&program->placement) ? ", counting slices apart" : "");
}

/* Attention is given and gives back what the program's parameters say, or sums in fp32. */
static bool
check_slot_dtype(LhProof *proof, const LhSlot *slot)
{
    const LhDtype dtype = proof->program->params.attention.dtype;

    if (slot->role == LH_SLOT_TEMP || part_bytes(proof->program, slot) == 0 ||
        slot->dtype == dtype || slot->dtype == LH_DTYPE_FP32)
        return true;
    return DECLARATION("has its input or output slot %s in %s; allowed: %s, fp32", slot->name,
                       lh_dtype_names[slot->dtype], lh_dtype_names[dtype]);
}

/* What a slot is, whatever the size of the whole. */
static bool
check_declared(LhProof *proof, const LhSlot *slot)
{
    const LhProgram *program = proof->program;

    if ((uint32_t)slot->kind >= LH_TENSOR_KINDS || (uint32_t)slot->role > LH_SLOT_STATE)
        return DECLARATION("has a slot %s of unknown kind or role", slot->name);
    if (slot->role == LH_SLOT_STATE && !lh_tensor_is_of_model(slot->kind))
        return DECLARATION("has a slot %s of kind %s as its state; that is of weights, and of "
                           "what goes with them",
                           slot->name, lh_tensor_names[slot->kind]);
    if (slot->by_heads && program->saved_group == 0)
        return DECLARATION("has a slot %s by heads, but no group saves by heads", slot->name);
    if (slot->parts == 0 || slot->part_bytes == 0 || slot->head_dim == 0)
        return DECLARATION("has an empty slot %s", slot->name);
    if (slot->part_bytes % lh_slot_element_bytes(slot) != 0)
        return DECLARATION("has %" G_GUINT64_FORMAT
                           " bytes in a part of slot %s, which are not whole elements of %u",
                           slot->part_bytes, slot->name, lh_slot_element_bytes(slot));
    if (!check_slot_dtype(proof, slot))
        return false;
    if (slot->role != LH_SLOT_TEMP && slot->head_dim != program->params.attention.head_dim)
        return DECLARATION("has an input or output slot %s with heads of %u, but its heads "
                           "have %u",
                           slot->name, slot->head_dim, program->params.attention.head_dim);
    return check_slot_parts(proof, slot);
}

static bool
check_slots(LhProof *proof)
{
    const LhProgram *program = proof->program;
    const uint64_t segments = lh_placement_segments(&program->placement);
    const uint64_t words = (segments * lh_proof_replicas(proof) + 63) / 64;
    uint64_t cells = 0, bytes = 0;

    if (segments * words > LH_VERIFY_CELLS_MAX)
        return DECLARATION("has too many segments and slices to follow; prove it for fewer ranks");
    if (program->slots_count > UINT16_MAX)
        return DECLARATION("has %u slots; at most %d are possible", program->slots_count,
                           UINT16_MAX);
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];
        uint64_t size;

        if (!check_declared(proof, slot))
            return false;
        if (__builtin_mul_overflow(slot->parts, slot->part_bytes, &size) ||
            __builtin_add_overflow(bytes, size, &bytes) || bytes > LH_VERIFY_BYTES_MAX)
            return DECLARATION("has more than 2^60 bytes in its slots (up to %s)", slot->name);
        if (!check_slot_size(proof, slot))
            return false;
        cells += slot->parts;
        if (cells * proof->ranks * words > LH_VERIFY_CELLS_MAX)
            return DECLARATION("has too many slot parts to follow; prove it for fewer ranks");
        if (slot->first_cell != cells - slot->parts)
            return DECLARATION("does not number the parts of its slots through (slot %s)",
                               slot->name);
    }
    proof->cells_count = (uint32_t)cells;
    return true;
}

bool
lh_proof_check_declarations(LhProof *proof)
{
    return check_placement(proof) && check_slices(proof) && check_slots(proof);
}

#define MALFORMED(op, slot, ...)                                                                   \
    (lh_proof_find(proof, LH_FINDING_MALFORMED,                                                    \
                   (LhRealPath){ proof->op_rank[op], op, slot, LH_NONE }, __VA_ARGS__),            \
     false)

static bool
check_region(LhProof *proof, uint32_t g, const LhRegion *region)
{
    const LhProgram *program = proof->program;
    const LhSlot *slot;

    if (region->slot >= program->slots_count)
        return MALFORMED(g, -1, "names slot %u, but there are %u", region->slot,
                         program->slots_count);
    slot = &program->slots[region->slot];
    if (!lh_slot_is_on(slot, proof->op_rank[g]))
        return MALFORMED(g, region->slot, "names slot %s, which this rank does not have",
                         slot->name);
    if (region->count == 0 || region->part >= slot->parts ||
        region->count > slot->parts - region->part)
        return MALFORMED(g, region->slot, "names %u parts of slot %s from %u on, which has %u",
                         region->count, slot->name, region->part, slot->parts);
    return true;
}

/* All of an input. */
static bool
check_given(LhProof *proof, uint32_t g, const LhRegion *region)
{
    const LhSlot *slot;

    if (!check_region(proof, g, region))
        return false;
    slot = &proof->program->slots[region->slot];
    if (slot->role == LH_SLOT_INPUT && region->count == slot->parts)
        return true;
    return MALFORMED(g, region->slot,
                     "stands for what gives %u of %u parts of slot %s, which is %s", region->count,
                     slot->parts, slot->name,
                     slot->role == LH_SLOT_INPUT ? "given whole" : "no input");
}

/* Ops other than messages and collectives work on whole parts. */
static bool
check_whole(LhProof *proof, uint32_t g, const LhRegion *region)
{
    const LhSlot *slot = &proof->program->slots[region->slot];

    if (region->half == LH_HALF_BOTH)
        return true;
    if (region->half >= LH_HALVES)
        return MALFORMED(g, region->slot, "names a half of slot %s that does not exist (%u)",
                         slot->name, region->half);
    return MALFORMED(g, region->slot,
                     "takes %s%s: one half alone is only sent and received, by exchanges and by "
                     "collectives without a reduction",
                     slot->name, lh_half_suffixes[region->half]);
}

/* What is moved may be one half, where there are two. */
static bool
check_half(LhProof *proof, uint32_t g, const LhRegion *region)
{
    const LhSlot *slot = &proof->program->slots[region->slot];

    if (region->half == LH_HALF_BOTH || (region->half < LH_HALVES && lh_slot_has_halves(slot)))
        return true;
    if (region->half >= LH_HALVES)
        return check_whole(proof, g, region);
    return MALFORMED(g, region->slot,
                     "moves %s%s, but only slots of kind kv and dkv have a half "
                     "%s; this one is of kind %s",
                     slot->name, lh_half_suffixes[region->half], lh_half_suffixes[region->half] + 1,
                     lh_tensor_names[slot->kind]);
}

/* A region that exists and may be written: inputs stay what they are. */
static bool
check_target(LhProof *proof, uint32_t g, const LhRegion *region)
{
    if (!check_region(proof, g, region))
        return false;
    if (proof->program->slots[region->slot].role != LH_SLOT_INPUT)
        return true;
    return MALFORMED(g, region->slot, "writes slot %s, which is an input",
                     proof->program->slots[region->slot].name);
}

static bool
check_mask(LhProof *proof, uint32_t g, const LhKernelArgs *args)
{
    if (args->mask > LH_MASK_POSITIONS)
        return MALFORMED(g, -1, "has a mask that does not exist (%u)", args->mask);
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
    return MALFORMED(g, -1, "reverses parts, which %s cannot", lh_proof_kernel(op)->name);
}

/* What kernels are called for: one slice of the heads, as large as those of all operands. */
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

/* What is the model's may be cut into pieces, and is rounded up so that all ranks have as much: it
 * may hold more than a call takes. */
static bool
holds_elements(const LhProof *proof, const LhRegion *region, uint64_t elements)
{
    const LhSlot *slot = &proof->program->slots[region->slot];
    const uint64_t bytes = lh_region_bytes(proof->program, *region);

    return lh_tensor_is_of_model(slot->kind) ? elements <= bytes / lh_slot_element_bytes(slot)
                                             : bytes == elements * lh_slot_element_bytes(slot);
}

/* Where a kernel says how many elements it takes, its operands have as many. */
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

/* The type that the elements of operand @i must have. */
static LhDtype
wanted_dtype(const LhProof *proof, const LhOp *op, uint32_t i)
{
    const LhSlot *slots = proof->program->slots;
    const LhDtype activation = lh_op_activation(proof->program, op);
    const LhDtype found = slots[op->compute.regions[i].slot].dtype;
    const LhDtype first = slots[op->compute.regions[0].slot].dtype;

    switch (lh_proof_kernel(op)->operands[i].element) {
    case LH_ELEMENT_FP32:
        return LH_DTYPE_FP32;
    case LH_ELEMENT_EITHER:
        return found == LH_DTYPE_FP32 ? LH_DTYPE_FP32 : activation;
    case LH_ELEMENT_OTHER:
        return first == LH_DTYPE_FP32 ? activation : LH_DTYPE_FP32;
    case LH_ELEMENT_ACTIVATION:
    default:
        return activation;
    }
}

/* Kernels for whichever tensor work on heads of whole rows, and on k and v together; not on
 * statistics, alone or beside o. Those of linear attention move states, or their gradients. */
static bool
suits_any(const LhKernel *kernel, LhTensorKind kind)
{
    const uint32_t states = 1u << LH_TENSOR_STATE | 1u << LH_TENSOR_DSTATE;
    const uint32_t suitable =
        kernel->linear ? states
                       : 1u << LH_TENSOR_Q | 1u << LH_TENSOR_KV | 1u << LH_TENSOR_O |
                             1u << LH_TENSOR_DO | 1u << LH_TENSOR_DQ | 1u << LH_TENSOR_DKV | states;

    return (suitable >> kind & 1) != 0;
}

/* Operands have the kinds and the element types that the row of the kernel says. */
static bool
check_operands(LhProof *proof, uint32_t g, uint32_t operands)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    const LhSlot *any = NULL; /* the first operand of any kind */

    for (uint32_t i = 0; i < operands; i++) {
        const LhOperand *operand = &kernel->operands[i];
        const uint16_t index = op->compute.regions[i].slot;
        const LhSlot *slot = &proof->program->slots[index];
        const LhDtype dtype = wanted_dtype(proof, op, i);

        if (operand->kind != LH_TENSOR_ANY && slot->kind != operand->kind)
            return MALFORMED(g, index, "takes slot %s (%s) as its operand %s (%s)", slot->name,
                             lh_tensor_names[slot->kind], operand->name,
                             lh_tensor_names[operand->kind]);
        if (operand->kind == LH_TENSOR_ANY && !suits_any(kernel, slot->kind))
            return MALFORMED(g, index, "takes slot %s (%s) as its operand %s, which cannot be that",
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

/* What an op writes shares nothing with its other operands, but where its kernel works in place. */
static bool
check_operands_apart(LhProof *proof, uint32_t g, uint32_t operands)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);

    for (uint32_t i = 0; i < operands; i++) {
        const LhOperandAccess access = kernel->operands[i].access;

        for (uint32_t k = 0; k < operands; k++) {
            const LhRegion *written = &op->compute.regions[i], *other = &op->compute.regions[k];
            g_autofree char *first = NULL, *second = NULL;

            if (i == k || (access != LH_OPERAND_WRITE && access != LH_OPERAND_UPDATE) ||
                !lh_regions_overlap(written, other) ||
                (i == kernel->in_place.written && k == kernel->in_place.read &&
                 written->part == other->part && written->count == other->count))
                continue;
            first = lh_region_text(proof->program, written);
            second = lh_region_text(proof->program, other);
            return MALFORMED(g, written->slot,
                             "writes its operand %s to slot %s, which overlaps slot %s, its "
                             "operand %s: they may not share a part",
                             kernel->operands[i].name, first, second, kernel->operands[k].name);
        }
    }
    return true;
}

static bool
check_compute(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const LhKernel *kernel;
    uint32_t operands = 0;

    if ((uint32_t)op->compute.kernel >= (uint32_t)LH_KERNELS_COUNT)
        return MALFORMED(g, -1, "calls a kernel that does not exist");
    kernel = lh_proof_kernel(op);
    while (kernel->operands[operands].access != LH_OPERAND_END)
        operands++;
    if (op->compute.regions_count != operands)
        return MALFORMED(g, -1, "has %u operands; %s takes %u", op->compute.regions_count,
                         kernel->name, operands);
    for (uint32_t i = 0; i < operands; i++) {
        const LhOperandAccess access = kernel->operands[i].access;

        if (!(access == LH_OPERAND_READ    ? check_region
              : access == LH_OPERAND_GIVEN ? check_given
                                           : check_target)(proof, g, &op->compute.regions[i]) ||
            !check_whole(proof, g, &op->compute.regions[i]))
            return false;
    }
    if (!check_operands(proof, g, operands) || !check_operands_apart(proof, g, operands))
        return false;
    /* What an embedded program does is proven of it alone. */
    if (kernel->args == LH_ARGS_NONE || lh_program_embeds(proof->program, op))
        return true;
    if (kernel->args != LH_ARGS_ATTENTION)
        return check_elements(proof, g) && lh_proof_check_layer_args(proof, g);
    return check_mask(proof, g, &op->compute.args) && check_reversed(proof, g, op) &&
           check_shape(proof, g, op);
}

/* Nothing is converted on its way: what is sent is what the slots hold. */
static bool
check_wire_bytes(LhProof *proof, uint32_t g, uint64_t claimed, uint64_t held)
{
    if (claimed == held)
        return true;
    return MALFORMED(g, -1,
                     "says that %" G_GUINT64_FORMAT
                     " bytes go over the wire, but its regions have %" G_GUINT64_FORMAT,
                     claimed, held);
}

static bool
check_exchange(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];

    if (op->exchange.parts_count == 0)
        return MALFORMED(g, -1, "exchanges nothing");
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &proof->parts[op->exchange.parts_first + i];

        if (part->peer >= proof->ranks || part->peer == proof->op_rank[g])
            return MALFORMED(g, -1, "%s rank %u: peers are the other ranks below %u",
                             part->send ? "sends to" : "receives from", part->peer, proof->ranks);
        if (part->regions_count == 0 || part->regions_count > LH_PART_REGIONS_MAX)
            return MALFORMED(g, -1, "has a message of %u regions; 1 to %d are possible",
                             part->regions_count, LH_PART_REGIONS_MAX);
        for (uint32_t k = 0; k < part->regions_count; k++) {
            if (!(part->send ? check_region : check_target)(proof, g, &part->regions[k]) ||
                !check_half(proof, g, &part->regions[k]))
                return false;
        }
        if (!check_wire_bytes(proof, g, part->wire_bytes, lh_part_wire_bytes(proof->program, part)))
            return false;
    }
    return true;
}

/* Each rank reduces a slice of an all-reduce: a number of elements, or whole parts of attention. */
static bool
check_slices_of_reduction(LhProof *proof, uint32_t g, const LhRegion *region, uint32_t members)
{
    const LhOp *op = &proof->ops[g];
    const LhSlot *slot = &proof->program->slots[region->slot];
    const uint64_t elements =
        lh_region_bytes(proof->program, *region) / lh_slot_element_bytes(slot);

    if (op->collective.kind != LH_COLL_ALL_REDUCE)
        return true;
    if (op->collective.reduction == LH_REDUCE_ATTENTION && region->count % members != 0)
        return MALFORMED(g, region->slot,
                         "merges %u parts of slot %s, which %u ranks cannot share evenly",
                         region->count, slot->name, members);
    if (op->collective.reduction == LH_REDUCE_SUM && elements % members != 0)
        return MALFORMED(g, region->slot,
                         "adds up %" G_GUINT64_FORMAT
                         " elements of slot %s, which %u ranks cannot share evenly",
                         elements, slot->name, members);
    return true;
}

/* Both regions of a tensor name the same half, or both halves; sums are of both. */
static bool
check_halves(LhProof *proof, uint32_t g, const LhRegion *send, const LhRegion *receive)
{
    const LhSlot *slots = proof->program->slots;

    if (!check_half(proof, g, send) || !check_half(proof, g, receive))
        return false;
    if (send->half != receive->half)
        return MALFORMED(g, receive->slot, "turns %s%s into %s%s: both must be the same half",
                         slots[send->slot].name, lh_half_suffixes[send->half],
                         slots[receive->slot].name, lh_half_suffixes[receive->half]);
    return !lh_collective_reduces(proof->ops[g].collective.kind) || check_whole(proof, g, send);
}

/* How many parts the send and receive regions of a tensor must have relative to each other. */
static bool
check_collective_tensor(LhProof *proof, uint32_t g, uint32_t tensor)
{
    const LhOp *op = &proof->ops[g];
    const LhRegion *send = &op->collective.send[tensor];
    const LhRegion *receive = &op->collective.receive[tensor];
    const LhCollectiveCall call = lh_collective_call(op, proof->counts, proof->op_rank[g]);
    const LhSlot *from = &proof->program->slots[send->slot];
    const LhSlot *to = &proof->program->slots[receive->slot];

    if (!lh_collective_fits(&call, tensor))
        return MALFORMED(g, receive->slot,
                         "turns %u parts into %u, which this collective of %u ranks cannot",
                         send->count, receive->count, call.members);
    if (from->kind != to->kind)
        return MALFORMED(g, receive->slot, "turns %s into %s", lh_tensor_names[from->kind],
                         lh_tensor_names[to->kind]);
    if (from->head_dim != to->head_dim)
        return MALFORMED(g, receive->slot, "turns slot %s with heads of %u into slot %s with %u",
                         from->name, from->head_dim, to->name, to->head_dim);
    if (from->dtype != to->dtype)
        return MALFORMED(g, receive->slot, "turns slot %s (%s) into slot %s (%s)", from->name,
                         lh_dtype_names[from->dtype], to->name, lh_dtype_names[to->dtype]);
    if (from->part_bytes != to->part_bytes)
        return MALFORMED(g, receive->slot,
                         "turns parts of %" G_GUINT64_FORMAT
                         " bytes of slot %s into parts of %" G_GUINT64_FORMAT " of slot %s",
                         from->part_bytes, from->name, to->part_bytes, to->name);
    return check_halves(proof, g, send, receive) &&
           check_slices_of_reduction(proof, g, send, call.members);
}

static bool
check_collective(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    uint64_t wire_bytes = 0;

    if ((uint32_t)op->collective.kind >= LH_COLL_KINDS ||
        (uint32_t)op->collective.reduction > LH_REDUCE_ATTENTION)
        return MALFORMED(g, -1, "is a collective or a reduction that does not exist");
    if (!lh_group_is_valid(&op->collective.group, proof->ranks))
        return MALFORMED(g, -1, "has a group with members that do not exist or repeat");
    if (lh_group_position(&op->collective.group, proof->op_rank[g]) == LH_NONE)
        return MALFORMED(g, -1, "is not a member of its own group");
    if (op->collective.tensors_count == 0 ||
        op->collective.tensors_count > LH_COLLECTIVE_TENSORS_MAX)
        return MALFORMED(g, -1, "moves %u tensors; 1 to %d are possible",
                         op->collective.tensors_count, LH_COLLECTIVE_TENSORS_MAX);
    for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
        if (!check_region(proof, g, &op->collective.send[i]) ||
            !check_target(proof, g, &op->collective.receive[i]) ||
            !check_collective_tensor(proof, g, i))
            return false;
        wire_bytes += lh_tensor_wire_bytes(proof->program, op, i);
    }
    return check_wire_bytes(proof, g, op->collective.wire_bytes, wire_bytes);
}

static bool
check_memory_op(LhProof *proof, uint32_t g)
{
    const LhRegion *region = &proof->ops[g].memory.region;

    if (!check_region(proof, g, region) || !check_whole(proof, g, region))
        return false;
    if (proof->program->slots[region->slot].role != LH_SLOT_TEMP)
        return MALFORMED(g, region->slot, "names slot %s, which is there for the whole program",
                         proof->program->slots[region->slot].name);
    return true;
}

static bool
check_header(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const uint32_t id = g - proof->rank_first[proof->op_rank[g]];

    if (op->kind >= LH_OP_KINDS || op->phase >= LH_PHASES)
        return MALFORMED(g, -1, "has a kind or phase that does not exist");
    if (op->id != id)
        return MALFORMED(g, -1, "calls itself op %u; ids count up from 0", op->id);
    if (lh_op_on_stream(op) && op->stream >= proof->program->streams_count)
        return MALFORMED(g, -1, "names stream %u, but there are %u", op->stream,
                         proof->program->streams_count);
    if (op->after_count > LH_OP_AFTER_MAX)
        return MALFORMED(g, -1, "comes after %u ops; at most %d are possible", op->after_count,
                         LH_OP_AFTER_MAX);
    for (uint32_t i = 0; i < op->after_count; i++) {
        if (op->after[i] >= id)
            return MALFORMED(g, -1, "comes after op %u, which is not an earlier op", op->after[i]);
    }
    return true;
}

static void
check_op(LhProof *proof, uint32_t g)
{
    switch (proof->ops[g].kind) {
    case LH_OP_COMPUTE:
        check_compute(proof, g);
        break;
    case LH_OP_EXCHANGE:
        check_exchange(proof, g);
        break;
    case LH_OP_COLLECTIVE:
        check_collective(proof, g);
        break;
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        check_memory_op(proof, g);
        break;
    default:
        break;
    }
}

void
lh_proof_check_form(LhProof *proof)
{
    for (uint32_t g = 0; g < proof->ops_count; g++) {
        if (check_header(proof, g))
            check_op(proof, g);
    }
}

void
lh_proof_check_loose_form(LhProof *proof)
{
    bool ok = check_slices(proof);

    for (uint32_t i = 0; ok && i < proof->program->slots_count; i++)
        ok = check_declared(proof, &proof->program->slots[i]);
    for (uint32_t g = 0; ok && g < proof->ops_count; g++)
        check_op(proof, g);
}
