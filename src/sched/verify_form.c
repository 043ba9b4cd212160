/*
 * The verifier's first stage: everything that an op names exists, and comes in the right number and
 * of the right kind.
 * Later stages index arrays by these names without looking again, so no program, however broken,
 * can make them crash.
 */
#include "sched/verify_private.h"

#include <string.h>

#define DECLARATION(...)                                                                           \
    (lh_proof_find(proof, LH_FINDING_MALFORMED, (LhPlace){ LH_NONE, LH_NONE, -1, LH_NONE },        \
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
    if (segments == 0 || placement->seq_length == 0 || placement->seq_length % segments != 0)
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

/*
 * Bytes that a part of @slot needs: it holds one segment of one slice. Accumulators have one or two
 * statistics beside o. 0: the size does not follow from the attention's shape.
 */
static uint64_t
part_bytes(const LhProgram *program, const LhSlot *slot, uint64_t statistics)
{
    const LhAttention *a = &program->params.attention;
    const uint64_t tokens =
        program->placement.seq_length / lh_placement_segments(&program->placement) * a->batch;
    const uint64_t slices = lh_program_slices(program, slot->kind);
    const uint64_t heads = a->heads / slices;
    const uint64_t row = (uint64_t)a->head_dim * slot->element_bytes;

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
        return tokens * heads * (tokens / a->batch) * slot->element_bytes;
    case LH_TENSOR_ACC:
        return tokens * heads * (row + statistics * lh_dtype_bytes(LH_DTYPE_FP32));
    case LH_TENSOR_LSE:
    case LH_TENSOR_DELTA:
        return tokens * heads * lh_dtype_bytes(LH_DTYPE_FP32);
    case LH_TENSOR_STATE:
    case LH_TENSOR_DSTATE:
        return (uint64_t)a->batch * heads * a->head_dim * row;
    default:
        return 0;
    }
}

static bool
check_slot_size(LhProof *proof, const LhSlot *slot)
{
    const uint64_t least = part_bytes(proof->program, slot, 1);
    const uint64_t most = part_bytes(proof->program, slot, 2);

    if (least == 0 || slot->part_bytes == least || slot->part_bytes == most)
        return true;
    return DECLARATION("has %" G_GUINT64_FORMAT " bytes in a part of slot %s; a segment of %s in "
                       "elements of %u bytes takes %" G_GUINT64_FORMAT,
                       slot->part_bytes, slot->name, lh_tensor_names[slot->kind],
                       slot->element_bytes, most);
}

static bool
is_scores(LhTensorKind kind)
{
    return kind == LH_TENSOR_SCORES || kind == LH_TENSOR_PROBS || kind == LH_TENSOR_DSCORES;
}

/* A rank's inputs and outputs are all of its own, and no more; of what no size is known of, there
 * may be less. Scores are nobody's own. */
static bool
check_slot_parts(LhProof *proof, const LhSlot *slot)
{
    const LhProgram *program = proof->program;
    const uint32_t parts = lh_program_parts(program, slot->kind);
    const bool sized = part_bytes(program, slot, 1) != 0;

    if (slot->role != LH_SLOT_TEMP && is_scores(slot->kind))
        return DECLARATION("has %s as its input or output slot %s", lh_tensor_names[slot->kind],
                           slot->name);
    if (slot->role == LH_SLOT_TEMP || slot->parts == parts || (!sized && slot->parts < parts))
        return true;
    return DECLARATION(
        "has %u parts in its input or output slot %s, but a rank holds %u segments%s", slot->parts,
        slot->name, parts,
        parts > lh_placement_parts(&program->placement) ? ", counting slices apart" : "");
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
    proof->cell_first = g_new0(uint32_t, (size_t)program->slots_count + 1);
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];
        uint64_t size;

        if ((uint32_t)slot->kind >= LH_TENSOR_KINDS || (uint32_t)slot->role > LH_SLOT_OUTPUT)
            return DECLARATION("has a slot %s of unknown kind or role", slot->name);
        if (slot->parts == 0 || slot->part_bytes == 0)
            return DECLARATION("has an empty slot %s", slot->name);
        if (!check_slot_parts(proof, slot))
            return false;
        if (__builtin_mul_overflow(slot->parts, slot->part_bytes, &size) ||
            __builtin_add_overflow(bytes, size, &bytes))
            return DECLARATION("has more than 2^64 bytes in its slots (up to %s)", slot->name);
        if (!check_slot_size(proof, slot))
            return false;
        cells += slot->parts;
        if (cells * proof->ranks * words > LH_VERIFY_CELLS_MAX)
            return DECLARATION("has too many slot parts to follow; prove it for fewer ranks");
        proof->cell_first[i + 1] = (uint32_t)cells;
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
                   (LhPlace){ proof->op_rank[op], op, slot, LH_NONE }, __VA_ARGS__),               \
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
    if (region->count == 0 || region->part >= slot->parts ||
        region->count > slot->parts - region->part)
        return MALFORMED(g, region->slot, "names %u parts of slot %s from %u on, which has %u",
                         region->count, slot->name, region->part, slot->parts);
    return true;
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

/* What kernels are called for: one slice of the heads. */
static bool
check_shape(LhProof *proof, uint32_t g, const LhKernelArgs *args)
{
    const LhProgram *program = proof->program;
    const LhAttention *attention = &program->params.attention;
    const uint32_t heads = attention->heads / lh_program_slices(program, LH_TENSOR_Q);
    const uint32_t groups = attention->groups / lh_program_slices(program, LH_TENSOR_KV);

    if (args->batch == attention->batch && args->heads == heads && args->groups == groups &&
        args->head_dim == attention->head_dim)
        return true;
    return MALFORMED(
        g, -1,
        "is called for batch %u, %u heads, %u groups, head dimension %u, but %s has %u, %u, %u, %u",
        args->batch, args->heads, args->groups, args->head_dim,
        program->head_slices > 1 ? "a slice" : "the program", attention->batch, heads, groups,
        attention->head_dim);
}

/* Whether the sizes of a call follow from the attention's shape. */
static bool
has_shape(const LhProof *proof, const LhOp *op)
{
    const LhTensorKind kind = proof->program->slots[op->compute.regions[0].slot].kind;

    return lh_proof_kernel(op)->effect != LH_EFFECT_OPAQUE && kind != LH_TENSOR_HIDDEN &&
           kind != LH_TENSOR_WEIGHT;
}

/* Bytes of an element that operand @i must have. */
static uint32_t
wanted_bytes(const LhProof *proof, const LhOp *op, uint32_t i)
{
    const uint32_t activation = lh_dtype_bytes(proof->program->params.attention.dtype);
    const uint32_t fp32 = lh_dtype_bytes(LH_DTYPE_FP32);
    const uint32_t found = proof->program->slots[op->compute.regions[i].slot].element_bytes;
    const uint32_t first = proof->program->slots[op->compute.regions[0].slot].element_bytes;

    switch (lh_proof_kernel(op)->operands[i].element) {
    case LH_ELEMENT_FP32:
        return fp32;
    case LH_ELEMENT_EITHER:
        return found == fp32 ? fp32 : activation;
    case LH_ELEMENT_OTHER:
        return first == fp32 ? activation : fp32;
    case LH_ELEMENT_ACTIVATION:
    default:
        return activation;
    }
}

/* Kernels for whichever tensor work on heads of whole rows, and on k and v together. */
static bool
suits_any(LhTensorKind kind)
{
    return !is_scores(kind) &&
           (!lh_tensor_is_kv(kind) || kind == LH_TENSOR_KV || kind == LH_TENSOR_DKV);
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
        const uint32_t bytes = wanted_bytes(proof, op, i);

        if (operand->kind != LH_TENSOR_ANY && slot->kind != operand->kind)
            return MALFORMED(g, index, "takes slot %s (%s) as its operand %s (%s)", slot->name,
                             lh_tensor_names[slot->kind], operand->name,
                             lh_tensor_names[operand->kind]);
        if (operand->kind == LH_TENSOR_ANY && !suits_any(slot->kind))
            return MALFORMED(g, index, "takes slot %s (%s) as its operand %s, which cannot be that",
                             slot->name, lh_tensor_names[slot->kind], operand->name);
        if (operand->kind == LH_TENSOR_ANY && any != NULL && slot->kind != any->kind)
            return MALFORMED(g, index,
                             "takes slot %s (%s) as its operand %s beside slot %s (%s): they must "
                             "be of one kind",
                             slot->name, lh_tensor_names[slot->kind], operand->name, any->name,
                             lh_tensor_names[any->kind]);
        if (slot->element_bytes != bytes)
            return MALFORMED(
                g, index, "takes slot %s (elements of %u bytes) as its operand %s (elements of %u)",
                slot->name, slot->element_bytes, operand->name, bytes);
        if (operand->kind == LH_TENSOR_ANY && any == NULL)
            any = slot;
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
        if (!check_region(proof, g, &op->compute.regions[i]))
            return false;
    }
    return check_operands(proof, g, operands) && check_mask(proof, g, &op->compute.args) &&
           check_reversed(proof, g, op) &&
           (!has_shape(proof, op) || check_shape(proof, g, &op->compute.args));
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
        if (part->wire_bytes == 0)
            return MALFORMED(g, -1, "has a message of 0 bytes with rank %u", part->peer);
        for (uint32_t k = 0; k < part->regions_count; k++) {
            if (!check_region(proof, g, &part->regions[k]))
                return false;
        }
    }
    return true;
}

static int
compare_u64(gconstpointer a, gconstpointer b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* All members exist and are different. */
static bool
group_is_valid(const LhGroup *group, uint32_t ranks)
{
    const uint64_t size = lh_group_size(group);
    g_autofree uint64_t *members = NULL;

    if (size == 0 || size > ranks)
        return false;
    members = g_new(uint64_t, size);
    for (uint64_t i = 0; i < size; i++)
        members[i] = lh_group_member(group, i);
    qsort(members, size, sizeof(uint64_t), compare_u64);
    for (uint64_t i = 1; i < size; i++) {
        if (members[i] == members[i - 1])
            return false;
    }
    return members[size - 1] < ranks;
}

/* How many parts the send and receive regions of a tensor must have relative to each other. */
static bool
check_collective_tensor(LhProof *proof, uint32_t g, uint32_t tensor)
{
    const LhOp *op = &proof->ops[g];
    const LhRegion *send = &op->collective.send[tensor];
    const LhRegion *receive = &op->collective.receive[tensor];
    const uint64_t members = lh_group_size(&op->collective.group);
    const LhSlot *from = &proof->program->slots[send->slot];
    const LhSlot *to = &proof->program->slots[receive->slot];
    bool fits = send->count == receive->count;

    if (op->collective.kind == LH_COLL_ALL_GATHER)
        fits = receive->count == members * send->count;
    else if (op->collective.kind == LH_COLL_REDUCE_SCATTER)
        fits = send->count == members * receive->count;
    else if (op->collective.kind == LH_COLL_ALL_TO_ALL)
        fits = fits && send->count % members == 0;
    if (!fits)
        return MALFORMED(g, receive->slot,
                         "turns %u parts into %u, which this collective of %u ranks cannot",
                         send->count, receive->count, (uint32_t)members);
    if (from->kind != to->kind)
        return MALFORMED(g, receive->slot, "turns %s into %s", lh_tensor_names[from->kind],
                         lh_tensor_names[to->kind]);
    if (from->element_bytes != to->element_bytes)
        return MALFORMED(g, receive->slot,
                         "turns slot %s (elements of %u bytes) into slot %s (elements of %u)",
                         from->name, from->element_bytes, to->name, to->element_bytes);
    return true;
}

static bool
check_collective(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];

    if ((uint32_t)op->collective.kind >= LH_COLL_KINDS ||
        (uint32_t)op->collective.reduction > LH_REDUCE_ATTENTION)
        return MALFORMED(g, -1, "is a collective or a reduction that does not exist");
    if (!group_is_valid(&op->collective.group, proof->ranks))
        return MALFORMED(g, -1, "has a group with members that do not exist or repeat");
    if (lh_group_position(&op->collective.group, proof->op_rank[g]) == LH_NONE)
        return MALFORMED(g, -1, "is not a member of its own group");
    if (op->collective.wire_bytes == 0)
        return MALFORMED(g, -1, "moves 0 bytes");
    if (op->collective.tensors_count == 0 ||
        op->collective.tensors_count > LH_COLLECTIVE_TENSORS_MAX)
        return MALFORMED(g, -1, "moves %u tensors; 1 to %d are possible",
                         op->collective.tensors_count, LH_COLLECTIVE_TENSORS_MAX);
    for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
        if (!check_region(proof, g, &op->collective.send[i]) ||
            !check_region(proof, g, &op->collective.receive[i]) ||
            !check_collective_tensor(proof, g, i))
            return false;
    }
    return true;
}

static bool
check_memory_op(LhProof *proof, uint32_t g)
{
    const uint16_t slot = proof->ops[g].memory.slot;

    if (slot >= proof->program->slots_count)
        return MALFORMED(g, -1, "names slot %u, but there are %u", slot,
                         proof->program->slots_count);
    if (proof->program->slots[slot].role != LH_SLOT_TEMP)
        return MALFORMED(g, slot, "names slot %s, which is there for the whole program",
                         proof->program->slots[slot].name);
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
    if (lh_proof_on_stream(op) && op->stream >= proof->program->streams_count)
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

void
lh_proof_check_form(LhProof *proof)
{
    for (uint32_t g = 0; g < proof->ops_count; g++) {
        if (!check_header(proof, g))
            continue;
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
}
