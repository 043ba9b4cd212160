/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a program's declarations: ranks, placement, heads and their slices, slots.
 */
#include "verify/verify_private.h"

#define DECLARATION(...)                                                                           \
    (lh_proof_find(proof, LH_FINDING_MALFORMED, (LhFindingPlace){ LH_NONE, LH_NONE, -1, LH_NONE }, \
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
        return DECLARATION("has %u ranks; the verifier supports 1 to %u", lh_program_ranks(program),
                           LH_VERIFY_RANKS_MAX);
    if ((uint32_t)placement->kind > LH_PLACE_HEADS || placement->ranks != program->params.ranks ||
        placement->seq_length != attention->seq_length)
        return DECLARATION("has a placement whose ranks or length differ from its parameters");
    segments = lh_placement_segments(placement);
    /* In a step the embedded programs define how ranks hold tokens. */
    if (segments == 0 || placement->seq_length == 0 ||
        (program->step == NULL && placement->seq_length % segments != 0))
        return DECLARATION("cannot split %" G_GUINT64_FORMAT " tokens into %" G_GUINT64_FORMAT
                           " equal segments",
                           placement->seq_length, segments);
    if (attention->batch == 0 || attention->heads == 0 || attention->groups == 0 ||
        attention->head_dim == 0)
        return DECLARATION("has an attention shape with a zero size");
    if (program->streams_count == 0 || program->streams_count > LH_STREAMS_MAX)
        return DECLARATION("has %u streams; 1 to %d are possible", program->streams_count,
                           LH_STREAMS_MAX);
    return true;
}

/* Checks that the heads can be split as declared, and that kernels get whole groups of them. */
bool
lh_form_check_slices(LhProof *proof)
{
    const LhProgram *program = proof->program;
    const LhAttention *attention = &program->params.attention;
    const uint32_t slices = lh_program_slices(program, LH_TENSOR_Q);
    const uint32_t kv_slices = lh_program_slices(program, LH_TENSOR_KV);

    if (attention->heads % slices != 0 || attention->groups % kv_slices != 0)
        return DECLARATION(
            "cannot split %u query heads into %u slices and %u key-value heads into %u",
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

/* Bytes a part of @slot needs: it holds one segment of one slice. 0: the size does not follow
 * from the attention shape. */
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

/* Input and output slots must hold exactly the rank's own segments. Where no size is known,
 * fewer parts are allowed. Tensors of the model have no segments, and scores are never inputs or
 * outputs. */
static bool
check_slot_parts(LhProof *proof, const LhSlot *slot)
{
    const LhProgram *program = proof->program;
    const uint32_t parts = lh_slot_parts(program, slot);
    const bool sized = part_bytes(program, slot) != 0;

    if (slot->role != LH_SLOT_TEMP && is_scores(slot->kind))
        return DECLARATION("has %s as its input or output slot %s", lh_tensor_names[slot->kind],
                           slot->name);
    /* A step's outputs are of several layers and micro-batches. */
    if (slot->role == LH_SLOT_TEMP || lh_tensor_is_of_model(slot->kind) || slot->parts == parts ||
        (!sized && slot->parts < parts) || program->step != NULL)
        return true;
    return DECLARATION(
        "has %u parts in its input or output slot %s, but a rank holds %u segments%s", slot->parts,
        slot->name, parts,
        parts > lh_placement_parts(&program->placement) ? ", counted per slice" : "");
}

/* Inputs and outputs of attention have the program's type, or fp32 for sums. */
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

/* Checks a slot by itself, independent of the total size. */
bool
lh_form_check_slot(LhProof *proof, const LhSlot *slot)
{
    const LhProgram *program = proof->program;

    if ((uint32_t)slot->kind >= LH_TENSOR_KINDS || (uint32_t)slot->role > LH_SLOT_STATE)
        return DECLARATION("has a slot %s of unknown kind or role", slot->name);
    if (slot->role == LH_SLOT_STATE && !lh_tensor_is_of_model(slot->kind))
        return DECLARATION("has a slot %s of kind %s as its state; states are weights and tensors "
                           "that belong to them",
                           slot->name, lh_tensor_names[slot->kind]);
    if (slot->on_host && slot->role != LH_SLOT_TEMP && slot->role != LH_SLOT_STATE)
        return DECLARATION("has its %s slot %s in host memory; only temporary slots and states may "
                           "be there",
                           lh_role_names[slot->role], slot->name);
    if (slot->by_heads && program->saved_group == 0)
        return DECLARATION("has a slot %s by heads, but no saved_group", slot->name);
    if (slot->parts == 0 || slot->part_bytes == 0 || slot->head_dim == 0)
        return DECLARATION("has an empty slot %s", slot->name);
    if (slot->part_bytes % lh_slot_element_bytes(slot) != 0)
        return DECLARATION("has %" G_GUINT64_FORMAT
                           " bytes in a part of slot %s, which are not whole elements of %u",
                           slot->part_bytes, slot->name, lh_slot_element_bytes(slot));
    if (slot->dtype == LH_DTYPE_INT8 && slot->kind != LH_TENSOR_MOMENTS)
        return DECLARATION("has a slot %s of kind %s in int8, which only moments have", slot->name,
                           lh_tensor_names[slot->kind]);
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

    if (segments * words > LH_VERIFY_WORDS_MAX)
        return DECLARATION("has too many segments and slices to verify; use fewer ranks");
    if (program->slots_count > UINT16_MAX)
        return DECLARATION("has %u slots; at most %d are possible", program->slots_count,
                           UINT16_MAX);
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];
        uint64_t size;

        if (!lh_form_check_slot(proof, slot))
            return false;
        if (__builtin_mul_overflow(slot->parts, slot->part_bytes, &size) ||
            __builtin_add_overflow(bytes, size, &bytes) || bytes > LH_VERIFY_BYTES_MAX)
            return DECLARATION("has more than 2^60 bytes in its slots (up to %s)", slot->name);
        if (!check_slot_size(proof, slot))
            return false;
        cells += slot->parts;
        if (cells * proof->ranks > LH_VERIFY_CELLS_MAX)
            return DECLARATION("has too many slot parts to verify; use fewer ranks");
        if (slot->first_cell != cells - slot->parts)
            return DECLARATION("does not number the parts of its slots consecutively (slot %s)",
                               slot->name);
    }
    proof->cells_count = (uint32_t)cells;
    return true;
}

bool
lh_proof_check_declarations(LhProof *proof)
{
    return check_placement(proof) && lh_form_check_slices(proof) && check_slots(proof);
}
