/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the explicit JSON form: they decode and check what stands in one field, write it,
 * and print the schema.
 */
#include "program/explicit/explicit_fields.h"

#include <math.h>

#define NAME_LENGTH_MAX (sizeof(((LhSlot *)NULL)->name) - 1)
#define STREAM_LENGTH_MAX (sizeof(((LhStream *)NULL)->name) - 1)
#define ROWS_MAX 2147483648.0 /* 2^31 */
#define U32_MAX 4294967295.0
#define SLOT_BYTES_MAX 281474976710656.0 /* 2^48 */
#define WIRE_BYTES_MAX 4398046511104.0   /* 2^42: a sum over all messages fits 64 bits */
#define FACTOR_MAX 1e30
#define TRAFFIC_MAX 1024      /* times the elements of a call, it fits 63 bits */
#define HIDDEN_MAX 16777216.0 /* 2^24 */
#define DOCUMENTS_MAX 1048576
#define COUNTS_MAX 12582912 /* 2 x 6 tensors x 2^20 ranks */

/* As they were written before options were. */
static const char *const wire_names[] = { "default", "fp32", "16bit", NULL };

static void
init_message(void *element)
{
    LhFormMessage *message = element;

    message->to = LH_FORM_ABSENT;
    message->from = LH_FORM_ABSENT;
}

static void
init_op(void *element)
{
    LhFormOp *op = element;

    op->mask = LH_FORM_NO_CHOICE;
    op->shift = LH_FORM_NO_SHIFT;
    op->nq = op->nk = op->pairs = LH_FORM_ABSENT;
    op->batch = op->heads = op->groups = op->head_dim = LH_FORM_ABSENT;
    op->q_start = op->q_part_step = op->k_start = op->k_part_step = op->stride =
        LH_FORM_NO_POSITION;
    op->scale = op->decay = (double)NAN;
    op->collective = op->reduction = LH_FORM_NO_CHOICE;
    op->group = (LhFormGroup){ .base = LH_FORM_ABSENT, .outer_count = 1 };
    op->wire_bytes = LH_FORM_ABSENT;
}

static void
init_slot(void *element)
{
    LhFormSlot *slot = element;

    slot->dtype = LH_FORM_NO_CHOICE;
}

LhForm
lh_form_new(void)
{
    return (LhForm){ .params.overlap = true };
}

#define AT(form, member, kind)                                                                     \
    .name = #member, .type = LH_FIELD_##kind, .offset = offsetof(form, member)
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

static const LhField param_fields[] = {
    { AT(LhFormParams, ranks, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = 1048576,
      .description = "Ranks that share the sequence." },
    { AT(LhFormParams, data_parallel_size, UINT), .min = 1, .max = 1048576,
      .description = "Groups of so many consecutive ranks, each with a sequence of its own; one if "
                     "absent." },
    { AT(LhFormParams, batch, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Sequences at a time." },
    { AT(LhFormParams, seq_length, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = ROWS_MAX,
      .description = "Tokens of a sequence, over all ranks." },
    { AT(LhFormParams, heads, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Query heads." },
    { AT(LhFormParams, groups, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Key-value heads; they divide the query heads." },
    { AT(LhFormParams, head_dim, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Dimension of a head." },
    { AT(LhFormParams, dtype, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_dtype_names,
      .description = "Type of activations." },
    { AT(LhFormParams, hidden_size, UINT), .min = 0, .max = HIDDEN_MAX,
      .description =
          "Width of the activations around the module; heads times head_dim if absent." },
    { AT(LhFormParams, causal, BOOL), .flags = LH_FIELD_REQUIRED,
      .description = "Whether the mask is causal; otherwise it is full." },
    { AT(LhFormParams, window, UINT), .min = 0, .max = ROWS_MAX,
      .description = "Keys that a causal query sees, itself included; all of them if absent." },
    { AT(LhFormParams, document_ends, UINTS), .min = 1, .max = DOCUMENTS_MAX,
      .description = "Packed documents: where each ends, rising to seq_length." },
    { AT(LhFormParams, scale, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "What the logits of softmax attention are multiplied by; 1/sqrt(head_dim) if "
                     "absent." },
    { AT(LhFormParams, linear, BOOL), .description = "Linear attention, not softmax." },
    { AT(LhFormParams, decay, DOUBLE), .min = 0, .max = 1,
      .description = "Of linear attention, per token; none if absent." },
    { AT(LhFormParams, pass, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_pass_names,
      .description = "Forward, backward, or both." },
    { AT(LhFormParams, keep_saved, BOOL),
      .description = "A forward pass alone leaves what a backward pass alone is given." },
    { AT(LhFormParams, options, STRINGS), .min = 1, .max = LH_PROGRAM_OPTIONS_MAX,
      .description = "The schedule's options that it was made with; for the record only." },
    { AT(LhFormParams, overlap, BOOL), .description = "For the record only; see options." },
    { AT(LhFormParams, published_code, BOOL), .description = "For the record only; see options." },
    { AT(LhFormParams, gradient_wire, CHOICE), .choices = wire_names,
      .description = "For the record only; see options." },
    END,
};

static const LhField slot_fields[] = {
    { AT(LhFormSlot, name, STRING), .flags = LH_FIELD_REQUIRED, .min = 1, .max = NAME_LENGTH_MAX,
      .description = "Letters, digits, underscores, dots and hyphens." },
    { AT(LhFormSlot, kind, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_tensor_names,
      .description = "What the slot holds." },
    { AT(LhFormSlot, role, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_role_names,
      .description = "Inputs and outputs are there for the whole program; temporary slots are "
                     "allocated and freed." },
    { AT(LhFormSlot, parts, UINT), .min = 1, .max = 1048576,
      .description = "Parts of equal size; 1 if absent." },
    { AT(LhFormSlot, part_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = SLOT_BYTES_MAX,
      .description = "Device memory of a part." },
    { AT(LhFormSlot, element_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 2, .max = 4,
      .description = "Bytes of an element, 2 or 4." },
    { AT(LhFormSlot, dtype, CHOICE), .choices = lh_dtype_names,
      .description = "Type of an element; fp32 if absent and it has 4 bytes, else that of the "
                     "activations." },
    { AT(LhFormSlot, head_dim, UINT), .min = 1, .max = 65536,
      .description = "Size of one head of its tensor, if it is not kv_channels; temporary slots "
                     "only." },
    { AT(LhFormSlot, by_heads, BOOL),
      .description = "An input or output that is saved between the passes by heads: it has all "
                     "segments of saved_group ranks for the rank's slices of the heads." },
    END,
};

static const LhField stream_fields[] = {
    { AT(LhFormStream, name, STRING), .flags = LH_FIELD_REQUIRED, .min = 1,
      .max = STREAM_LENGTH_MAX, .description = "Name that ops use." },
    { AT(LhFormStream, kind, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_stream_kind_names,
      .description = "Compute or communication." },
    END,
};

static const LhField message_fields[] = {
    { AT(LhFormMessage, to, UINT), .description = "Rank that receives; this or from." },
    { AT(LhFormMessage, from, UINT), .description = "Rank that sends; this or to." },
    { AT(LhFormMessage, tag, UINT), .flags = LH_FIELD_STATED, .min = 0, .max = UINT16_MAX,
      .description = "A label, the same at both ends; messages match by ranks and order." },
    { AT(LhFormMessage, wire_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 0,
      .max = WIRE_BYTES_MAX, .description = "Bytes that cross the network." },
    { AT(LhFormMessage, regions, STRINGS), .flags = LH_FIELD_REQUIRED, .min = 1,
      .max = LH_PART_REGIONS_MAX,
      .description = "What is sent, or where it goes: slot, slot[part] or slot[first..last]; of a "
                     "slot of kind kv or dkv, :k or :v behind that is one half of each part." },
    END,
};

static const LhField group_fields[] = {
    { AT(LhFormGroup, base, UINT), .flags = LH_FIELD_REQUIRED, .min = 0, .max = U32_MAX,
      .description = "First rank." },
    { AT(LhFormGroup, stride, UINT), .flags = LH_FIELD_REQUIRED, .min = 0, .max = U32_MAX,
      .description = "From one rank to the next." },
    { AT(LhFormGroup, count, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Ranks of a row." },
    { AT(LhFormGroup, outer_stride, UINT), .flags = LH_FIELD_STATED, .min = 0, .max = U32_MAX,
      .description = "From one row to the next." },
    { AT(LhFormGroup, outer_count, UINT), .flags = LH_FIELD_STATED, .min = 1, .max = U32_MAX,
      .description = "Rows; 1 if absent." },
    END,
};

static const LhField op_fields[] = {
    { AT(LhFormOp, op, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_op_kind_names,
      .description = "Kind of op. Ops are numbered from 0 in the order of their rank." },
    { AT(LhFormOp, phase, CHOICE), .choices = lh_phase_names, .description = "Forward if absent." },
    { AT(LhFormOp, step, UINT), .flags = LH_FIELD_STATED, .min = 0, .max = U32_MAX,
      .description = "Step of the schedule, a label." },
    { AT(LhFormOp, layer, UINT), .min = 0, .max = UINT16_MAX, .description = "A label; from 0." },
    { AT(LhFormOp, micro_batch, UINT), .min = 0, .max = UINT16_MAX,
      .description = "A label; from 0." },
    { AT(LhFormOp, module, UINT), .min = 0, .max = UINT8_MAX,
      .description = "A label: which schedule within a larger program it belongs to, from 1." },
    { AT(LhFormOp, communicator, UINT), .min = 0, .max = UINT8_MAX,
      .description = "Of exchanges and collectives: which communicator they run on, 0 if absent. "
                     "What a rank calls on one has one order, the same on all of its ranks." },
    { AT(LhFormOp, stream, STRING),
      .description = "Stream of a compute, exchange or collective op." },
    { AT(LhFormOp, after, UINTS), .min = 0, .max = LH_OP_AFTER_MAX,
      .description = "Earlier ops of the rank that must be complete." },
    { AT(LhFormOp, slot, STRING),
      .description = "What alloc and free are about: slot, slot[part] or slot[first..last]." },
    { AT(LhFormOp, kernel, STRING), .description = "Kernel of a compute op." },
    { AT(LhFormOp, regions, STRINGS), .min = 0, .max = LH_KERNEL_OPERANDS_MAX,
      .description = "Operands of the kernel: slot, slot[part] or slot[first..last]." },
    { AT(LhFormOp, mask, CHOICE), .choices = lh_mask_names, .description = "Empty if absent." },
    { AT(LhFormOp, shift, INT), .min = -1, .max = 0,
      .description = "Of a causal mask: j <= i + shift." },
    { AT(LhFormOp, nq, UINT), .min = 0, .max = ROWS_MAX,
      .description = "Query rows; 0 if absent." },
    { AT(LhFormOp, nk, UINT), .min = 0, .max = ROWS_MAX, .description = "Key rows; 0 if absent." },
    { AT(LhFormOp, pairs, UINT), .min = 0, .max = 4611686018427387904.0,
      .description = "Pairs under the mask; worked out if absent, but for the mask positions." },
    { AT(LhFormOp, batch, UINT), .min = 0, .max = U32_MAX,
      .description = "The program's if absent." },
    { AT(LhFormOp, heads, UINT), .min = 0, .max = U32_MAX,
      .description = "The program's, of one slice, if absent." },
    { AT(LhFormOp, groups, UINT), .min = 0, .max = U32_MAX,
      .description = "The program's, of one slice, if absent." },
    { AT(LhFormOp, head_dim, UINT), .min = 0, .max = U32_MAX,
      .description = "The program's if absent." },
    { AT(LhFormOp, m, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Of a product of m x k with k x n." },
    { AT(LhFormOp, n, UINT), .min = 1, .max = ROWS_MAX, .description = "Likewise." },
    { AT(LhFormOp, k, UINT), .min = 1, .max = ROWS_MAX, .description = "Likewise." },
    { AT(LhFormOp, experts, UINT), .min = 1, .max = U32_MAX,
      .description = "Experts that rows choose among; matrices of their product, 1 if absent." },
    { AT(LhFormOp, choices, UINT), .min = 1, .max = U32_MAX,
      .description = "Of a kernel of experts: how many each row chooses." },
    { AT(LhFormOp, members, UINT), .min = 1, .max = U32_MAX,
      .description = "Ranks that share a segment's rows outside attention, where these go with a "
                     "tensor by heads." },
    { AT(LhFormOp, elements, UINT), .min = 1, .max = SLOT_BYTES_MAX,
      .description = "Of a kernel that touches every element, or every parameter, once." },
    { AT(LhFormOp, rows, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Of a kernel that works by rows outside attention; of a change to heads, of "
                     "the segment in one sequence." },
    { AT(LhFormOp, width, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Elements of a row of the forward call's output; of a loss, columns of the "
                     "logits on this rank." },
    { AT(LhFormOp, vocabulary, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Of embeddings and losses: tokens that there are." },
    { AT(LhFormOp, first_row, UINT), .min = 0, .max = ROWS_MAX,
      .description = "The first token of these that the rank has; 0 if absent." },
    { AT(LhFormOp, count, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Of embeddings: how many of them the rank has." },
    { AT(LhFormOp, tokens, UINT), .min = 1, .max = SLOT_BYTES_MAX,
      .description = "Of a loss: tokens of all ranks, which it is the mean over." },
    { AT(LhFormOp, epsilon, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Of norms, under the root, and of the optimizer; 0 if absent." },
    { AT(LhFormOp, adds, BOOL),
      .description = "Of gradients of norms: dx is added to, and first is about dw alone." },
    { AT(LhFormOp, traffic, UINT), .min = 1, .max = TRAFFIC_MAX,
      .description = "Bytes that are moved for each element of the output; every operand once if "
                     "absent." },
    { AT(LhFormOp, start, UINT), .min = 0, .max = ROWS_MAX,
      .description = "Of a change to heads: where the first row stands in the sequence; 0 if "
                     "absent." },
    { AT(LhFormOp, base, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Theta of the rotary embedding; no rotation if absent." },
    { AT(LhFormOp, learning_rate, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Of the optimizer; 0 if absent, like the next four." },
    { AT(LhFormOp, beta1, DOUBLE), .min = 0, .max = 1, .description = "Of the first moments." },
    { AT(LhFormOp, beta2, DOUBLE), .min = 0, .max = 1, .description = "Of the second moments." },
    { AT(LhFormOp, weight_decay, DOUBLE), .min = 0, .max = FACTOR_MAX, .description = "Of AdamW." },
    { AT(LhFormOp, clip, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "The largest norm that gradients may have; any if absent." },
    { AT(LhFormOp, q_start, INT), .min = 0, .max = ROWS_MAX,
      .description = "Mask positions: row i of part p of the queries is token q_start + p "
                     "q_part_step + i stride." },
    { AT(LhFormOp, q_part_step, INT), .min = -ROWS_MAX, .max = ROWS_MAX,
      .description = "From a part of the queries to the next; 0 if absent." },
    { AT(LhFormOp, k_start, INT), .min = 0, .max = ROWS_MAX,
      .description = "Likewise of the keys." },
    { AT(LhFormOp, k_part_step, INT), .min = -ROWS_MAX, .max = ROWS_MAX,
      .description = "Likewise of the keys." },
    { AT(LhFormOp, stride, INT), .min = 0, .max = ROWS_MAX,
      .description = "Of the rows of both, or of a change to heads; 1 if absent." },
    { AT(LhFormOp, first, BOOL), .description = "Accumulators start here." },
    { AT(LhFormOp, reversed, BOOL),
      .description = "Part i of the target goes with part i from the end of the source." },
    { AT(LhFormOp, states, UINT), .min = 0, .max = U32_MAX,
      .description = "States that linear_prefix adds up; 0 if absent." },
    { AT(LhFormOp, scale, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Of the logits; the program's if absent. 0 means 1/sqrt(head_dim)." },
    { AT(LhFormOp, decay, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Of linear attention, per token; 0 means none." },
    { AT(LhFormOp, messages, ARRAY), .min = 1, .max = 65535, .fields = message_fields,
      .element_size = sizeof(LhFormMessage), .element_init = init_message,
      .description = "Messages of an exchange, one group." },
    { AT(LhFormOp, collective, CHOICE), .choices = lh_collective_names,
      .description = "Kind of a collective op." },
    { AT(LhFormOp, reduction, CHOICE), .choices = lh_reduction_names,
      .description = "Sum if absent." },
    { AT(LhFormOp, group, OBJECT), .fields = group_fields,
      .description = "Ranks base + i stride + j outer_stride." },
    { AT(LhFormOp, send, STRINGS), .flags = LH_FIELD_OR_ONE, .min = 1,
      .max = LH_COLLECTIVE_TENSORS_MAX,
      .description =
          "Region that a collective reads, or one for each of its tensors; written as in "
          "messages." },
    { AT(LhFormOp, receive, STRINGS), .flags = LH_FIELD_OR_ONE, .min = 1,
      .max = LH_COLLECTIVE_TENSORS_MAX,
      .description = "Region that a collective writes, or one for each of its tensors; likewise." },
    { AT(LhFormOp, counts, UINTS), .min = 2, .max = COUNTS_MAX,
      .description = "An all-to-all of unequal pieces: for each tensor, the parts that go to each "
                     "member of the group, then those that come from each." },
    { AT(LhFormOp, wire_bytes, UINT), .min = 0, .max = WIRE_BYTES_MAX,
      .description = "Of this rank's contribution to a collective, all tensors." },
    END,
};

const LhField lh_form_rank_fields[] = {
    { AT(LhFormRank, ops, LATER), .flags = LH_FIELD_REQUIRED, .min = 0, .max = LH_EXPLICIT_OPS_MAX,
      .fields = op_fields, .element_size = sizeof(LhFormOp), .element_init = init_op,
      .description = "Ops in program order." },
    END,
};

static const LhField stated_fields[] = {
    { AT(LhFormStated, bytes_sent, UINTS), .description = "Bytes sent, one number per rank." },
    { AT(LhFormStated, flops, UINTS), .description = "Attention flops, one number per rank." },
    { AT(LhFormStated, peak_bytes, UINTS),
      .description = "Peak device memory, one number per rank." },
    END,
};

const LhField lh_program_fields[] = {
    { AT(LhForm, schema, STRING), .flags = LH_FIELD_REQUIRED, .description = LH_EXPLICIT_SCHEMA },
    { AT(LhForm, params, OBJECT), .flags = LH_FIELD_REQUIRED, .fields = param_fields,
      .description = "What the program computes." },
    { AT(LhForm, placement, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_placement_names,
      .description = "Which tokens a rank holds." },
    { AT(LhForm, placement_split, UINT), .min = 1, .max = 1048576,
      .description = "Of the placement zigzag: so many ranks share a pair of half-chunks; 1 if "
                     "absent." },
    { AT(LhForm, head_slices, UINT), .min = 1, .max = U32_MAX,
      .description =
          "Slices of heads that q and what is shaped like it are cut into; 1 if absent." },
    { AT(LhForm, kv_slices, UINT), .min = 1, .max = U32_MAX,
      .description = "Slices of heads that k and v are cut into; 1 if absent." },
    { AT(LhForm, saved_group, UINT), .min = 1, .max = 1048576,
      .description = "Ranks in a row that exchange heads, for slots that are by_heads." },
    { AT(LhForm, saved, STRINGS), .min = 1, .max = LH_TENSOR_KINDS,
      .description = "Kinds of tensors whose input slots are all by_heads." },
    { .name = "closed_form",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhForm, stated),
      .fields = stated_fields,
      .description = "Closed forms that the program claims to keep." },
    { AT(LhForm, slots, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 0, .max = 4096,
      .fields = slot_fields, .element_size = sizeof(LhFormSlot), .element_init = init_slot,
      .description = "Buffers of every rank." },
    { AT(LhForm, streams, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 1, .max = LH_STREAMS_MAX,
      .fields = stream_fields, .element_size = sizeof(LhFormStream),
      .description = "Queues of every rank." },
    { AT(LhForm, ranks, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 1, .max = 1048576,
      .fields = lh_form_rank_fields, .element_size = sizeof(LhFormRank),
      .description = "One program per rank." },
    END,
};
