/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field tables of the explicit JSON form. They decode and check single fields, write them, and
 * print the schema.
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
#define TRAFFIC_MAX 1024      /* times the elements of a call: fits 63 bits */
#define HIDDEN_MAX 16777216.0 /* 2^24 */
#define DOCUMENTS_MAX 1048576
#define COUNTS_MAX 12582912 /* 2 x 6 tensors x 2^20 ranks */

/* Values of gradient_wire in older files, before the `options` field. */
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
      .description = "Data-parallel size: groups of `ranks` consecutive ranks, each with its own "
                     "sequence. Default 1." },
    { AT(LhFormParams, batch, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Sequences per batch." },
    { AT(LhFormParams, seq_length, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = ROWS_MAX,
      .description = "Tokens of a sequence, over all ranks." },
    { AT(LhFormParams, heads, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Query heads." },
    { AT(LhFormParams, groups, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Key-value heads; they divide the query heads." },
    { AT(LhFormParams, head_dim, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Dimension of a head." },
    { AT(LhFormParams, dtype, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_activation_names,
      .description = "Data type of activations." },
    { AT(LhFormParams, hidden_size, UINT), .min = 0, .max = HIDDEN_MAX,
      .description =
          "Hidden size of the activations around the module; heads x head_dim if absent." },
    { AT(LhFormParams, causal, BOOL), .flags = LH_FIELD_REQUIRED,
      .description = "True: causal mask; false: full mask." },
    { AT(LhFormParams, window, UINT), .min = 0, .max = ROWS_MAX,
      .description =
          "Sliding window: keys that a causal query attends to, itself included; all if absent." },
    { AT(LhFormParams, document_ends, UINTS), .min = 1, .max = DOCUMENTS_MAX,
      .description = "Packed documents: end of each, ascending to seq_length." },
    { AT(LhFormParams, scale, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Scale of the softmax attention logits; 1/sqrt(head_dim) if absent." },
    { AT(LhFormParams, linear, BOOL),
      .description = "Linear attention instead of softmax attention." },
    { AT(LhFormParams, decay, DOUBLE), .min = 0, .max = 1,
      .description = "Decay of linear attention, per token; none if absent." },
    { AT(LhFormParams, pass, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_pass_names,
      .description = "Forward, backward, or both." },
    { AT(LhFormParams, keep_saved, BOOL),
      .description = "Forward pass only: keep, as outputs, the tensors that a backward pass alone "
                     "takes as inputs." },
    { AT(LhFormParams, options, STRINGS), .min = 1, .max = LH_PROGRAM_OPTIONS_MAX,
      .description = "Options of the schedule that generated this program; for the record only." },
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
      .description = "Tensor that the slot holds." },
    { AT(LhFormSlot, role, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_role_names,
      .description = "Inputs and outputs exist for the whole program; temporary slots are "
                     "allocated and freed." },
    { AT(LhFormSlot, parts, UINT), .min = 1, .max = 1048576,
      .description = "Parts of equal size; 1 if absent." },
    { AT(LhFormSlot, part_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = SLOT_BYTES_MAX,
      .description = "Device memory of a part, bytes." },
    { AT(LhFormSlot, element_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = 4,
      .description = "Bytes of an element: 1 (int8), 2 or 4." },
    { AT(LhFormSlot, dtype, CHOICE), .choices = lh_dtype_names,
      .description = "Data type of an element. If absent: fp32 for 4-byte elements, int8 for "
                     "1-byte ones, otherwise that of the activations." },
    { AT(LhFormSlot, head_dim, UINT), .min = 1, .max = 65536,
      .description =
          "Head dimension of the slot's tensor, if not params.head_dim; temporary slots only." },
    { AT(LhFormSlot, by_heads, BOOL),
      .description =
          "True for an input or output that is saved between the passes by heads: it holds all "
          "segments of saved_group ranks for the rank's slices of the heads." },
    { AT(LhFormSlot, on_host, BOOL),
      .description = "True for a temporary slot or a state in host memory: to_host and from_host "
                     "copy it, and the host's CPU runs kernels of the optimizer on it." },
    END,
};

static const LhField stream_fields[] = {
    { AT(LhFormStream, name, STRING), .flags = LH_FIELD_REQUIRED, .min = 1,
      .max = STREAM_LENGTH_MAX, .description = "Name by which ops refer to the stream." },
    { AT(LhFormStream, kind, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_stream_kind_names,
      .description = "Compute or communication." },
    END,
};

static const LhField message_fields[] = {
    { AT(LhFormMessage, to, UINT),
      .description = "Receiving rank. A message has either this or from." },
    { AT(LhFormMessage, from, UINT),
      .description = "Sending rank. A message has either this or to." },
    { AT(LhFormMessage, tag, UINT), .flags = LH_FIELD_STATED, .min = 0, .max = UINT16_MAX,
      .description = "Label, the same at both ends. Messages match by ranks and order." },
    { AT(LhFormMessage, wire_bytes, UINT), .flags = LH_FIELD_REQUIRED, .min = 0,
      .max = WIRE_BYTES_MAX, .description = "Bytes sent over the network." },
    { AT(LhFormMessage, regions, STRINGS), .flags = LH_FIELD_REQUIRED, .min = 1,
      .max = LH_PART_REGIONS_MAX,
      .description = "Regions sent, or received into: slot, slot[part] or slot[first..last]. For a "
                     "slot of kind kv or dkv, a suffix :k or :v selects one half of each part." },
    END,
};

static const LhField group_fields[] = {
    { AT(LhFormGroup, base, UINT), .flags = LH_FIELD_REQUIRED, .min = 0, .max = U32_MAX,
      .description = "First rank." },
    { AT(LhFormGroup, stride, UINT), .flags = LH_FIELD_REQUIRED, .min = 0, .max = U32_MAX,
      .description = "Stride from one rank to the next." },
    { AT(LhFormGroup, count, UINT), .flags = LH_FIELD_REQUIRED, .min = 1, .max = U32_MAX,
      .description = "Ranks in a row." },
    { AT(LhFormGroup, outer_stride, UINT), .flags = LH_FIELD_STATED, .min = 0, .max = U32_MAX,
      .description = "Stride from one row to the next." },
    { AT(LhFormGroup, outer_count, UINT), .flags = LH_FIELD_STATED, .min = 1, .max = U32_MAX,
      .description = "Number of rows; 1 if absent." },
    END,
};

static const LhField op_fields[] = {
    { AT(LhFormOp, op, CHOICE), .flags = LH_FIELD_REQUIRED, .choices = lh_op_kind_names,
      .description = "Kind of op. Ops are numbered from 0 in the order of their rank." },
    { AT(LhFormOp, phase, CHOICE), .choices = lh_phase_names,
      .description = "Phase of the training step; forward if absent." },
    { AT(LhFormOp, step, UINT), .flags = LH_FIELD_STATED, .min = 0, .max = U32_MAX,
      .description = "Step of the schedule; a label." },
    { AT(LhFormOp, layer, UINT), .min = 0, .max = UINT16_MAX,
      .description = "Layer, from 0; a label." },
    { AT(LhFormOp, micro_batch, UINT), .min = 0, .max = UINT16_MAX,
      .description = "Micro-batch, from 0; a label." },
    { AT(LhFormOp, module, UINT), .min = 0, .max = UINT8_MAX,
      .description =
          "Embedded schedule of a larger program that the op belongs to, from 1; a label." },
    { AT(LhFormOp, communicator, UINT), .min = 0, .max = UINT8_MAX,
      .description = "Communicator of an exchange or collective; 0 if absent. All its ranks must "
                     "call it in the same order." },
    { AT(LhFormOp, stream, STRING),
      .description = "Stream of a compute, exchange or collective op." },
    { AT(LhFormOp, after, UINTS), .min = 0, .max = LH_OP_AFTER_MAX,
      .description = "Ids of earlier ops of the rank that must be complete." },
    { AT(LhFormOp, slot, STRING),
      .description = "Region to allocate or free: slot, slot[part] or slot[first..last]." },
    { AT(LhFormOp, kernel, STRING), .description = "Kernel of a compute op." },
    { AT(LhFormOp, regions, STRINGS), .min = 0, .max = LH_KERNEL_OPERANDS_MAX,
      .description = "Operands of the kernel: slot, slot[part] or slot[first..last]." },
    { AT(LhFormOp, mask, CHOICE), .choices = lh_mask_names,
      .description = "Mask of an attention kernel; empty if absent." },
    { AT(LhFormOp, shift, INT), .min = -1, .max = 0,
      .description = "Shift of a causal mask: query i attends to keys j <= i + shift." },
    { AT(LhFormOp, nq, UINT), .min = 0, .max = ROWS_MAX,
      .description = "Query rows; 0 if absent." },
    { AT(LhFormOp, nk, UINT), .min = 0, .max = ROWS_MAX, .description = "Key rows; 0 if absent." },
    { AT(LhFormOp, pairs, UINT), .min = 0, .max = 4611686018427387904.0,
      .description = "Unmasked pairs; computed if absent. Required with the mask positions." },
    { AT(LhFormOp, batch, UINT), .min = 0, .max = U32_MAX,
      .description = "Batch; the program's if absent." },
    { AT(LhFormOp, heads, UINT), .min = 0, .max = U32_MAX,
      .description = "Query heads; those of one slice of the program if absent." },
    { AT(LhFormOp, groups, UINT), .min = 0, .max = U32_MAX,
      .description = "Key-value heads; those of one slice of the program if absent." },
    { AT(LhFormOp, head_dim, UINT), .min = 0, .max = U32_MAX,
      .description = "Head dimension; the program's if absent." },
    { AT(LhFormOp, m, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Rows m of a matrix product m x k by k x n." },
    { AT(LhFormOp, n, UINT), .min = 1, .max = ROWS_MAX, .description = "Likewise." },
    { AT(LhFormOp, k, UINT), .min = 1, .max = ROWS_MAX, .description = "Likewise." },
    { AT(LhFormOp, experts, UINT), .min = 1, .max = U32_MAX,
      .description =
          "Experts that rows choose among; number of matrices in an expert product. 1 if absent." },
    { AT(LhFormOp, choices, UINT), .min = 1, .max = U32_MAX,
      .description = "Experts chosen per row (top-k), for expert kernels." },
    { AT(LhFormOp, members, UINT), .min = 1, .max = U32_MAX,
      .description = "Ranks that share a segment's rows outside attention; for kernels that "
                     "combine such rows with a tensor by heads." },
    { AT(LhFormOp, elements, UINT), .min = 1, .max = SLOT_BYTES_MAX,
      .description = "Elements or parameters of a kernel that touches each once." },
    { AT(LhFormOp, rows, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Rows of a kernel outside attention; for a change to heads, rows of the "
                     "segment in one sequence." },
    { AT(LhFormOp, width, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Elements per row of the forward output; for a loss, columns of the logits on "
                     "this rank." },
    { AT(LhFormOp, vocabulary, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Vocabulary size, for embeddings and losses." },
    { AT(LhFormOp, first_row, UINT), .min = 0, .max = ROWS_MAX,
      .description = "First token id of the vocabulary shard on this rank; 0 if absent." },
    { AT(LhFormOp, count, UINT), .min = 1, .max = ROWS_MAX,
      .description = "Rows of the embedding table on this rank." },
    { AT(LhFormOp, tokens, UINT), .min = 1, .max = SLOT_BYTES_MAX,
      .description = "Tokens of all ranks that a loss is averaged over." },
    { AT(LhFormOp, epsilon, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Epsilon of norms (under the root) and of the optimizer; 0 if absent." },
    { AT(LhFormOp, fp32, BOOL),
      .description = "Whether a matrix product is computed in fp32, without matrix units: the same "
                     "result in more time. False if absent." },
    { AT(LhFormOp, adds, BOOL),
      .description =
          "For gradients of norms: dx is accumulated into, and `first` applies to dw only." },
    { AT(LhFormOp, traffic, UINT), .min = 1, .max = TRAFFIC_MAX,
      .description =
          "Bytes moved per element of the output; if absent, every operand is moved once." },
    { AT(LhFormOp, start, UINT), .min = 0, .max = ROWS_MAX,
      .description = "Sequence position of the first row in a change to heads; 0 if absent." },
    { AT(LhFormOp, base, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Base theta of the rotary embedding; no rotation if absent." },
    { AT(LhFormOp, learning_rate, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Learning rate of the optimizer; 0 if absent, like the next four." },
    { AT(LhFormOp, beta1, DOUBLE), .min = 0, .max = 1,
      .description = "Decay rate of the first moments." },
    { AT(LhFormOp, beta2, DOUBLE), .min = 0, .max = 1,
      .description = "Decay rate of the second moments." },
    { AT(LhFormOp, weight_decay, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Weight decay of AdamW." },
    { AT(LhFormOp, clip, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Largest gradient norm (gradient clipping); unlimited if absent." },
    { AT(LhFormOp, q_start, INT), .min = 0, .max = ROWS_MAX,
      .description =
          "Mask positions: row i of query part p is token q_start + p q_part_step + i stride." },
    { AT(LhFormOp, q_part_step, INT), .min = -ROWS_MAX, .max = ROWS_MAX,
      .description = "Step from one part of the queries to the next; 0 if absent." },
    { AT(LhFormOp, k_start, INT), .min = 0, .max = ROWS_MAX,
      .description = "Token of the first key; the keys' counterpart of q_start." },
    { AT(LhFormOp, k_part_step, INT), .min = -ROWS_MAX, .max = ROWS_MAX,
      .description = "Step from one part of the keys to the next; 0 if absent." },
    { AT(LhFormOp, stride, INT), .min = 0, .max = ROWS_MAX,
      .description =
          "Stride of the query and key rows, or of the rows in a change to heads; 1 if absent." },
    { AT(LhFormOp, halves, UINT), .min = 1, .max = U32_MAX,
      .description = "Matrices of a weight side by side that Muon orthogonalises apart; 1 if "
                     "absent." },
    { AT(LhFormOp, slices, UINT), .min = 1, .max = U32_MAX,
      .description = "Slices of a weight that are joined; 1 if absent." },
    { AT(LhFormOp, replicas, UINT), .min = 1, .max = U32_MAX,
      .description = "Consecutive slices that are the same; 1 if absent." },
    { AT(LhFormOp, slice, UINT), .min = 0, .max = U32_MAX,
      .description = "The rank's own slice, without replicas; 0 if absent." },
    { AT(LhFormOp, by_rows, BOOL),
      .description = "Slices are of a weight's rows; otherwise of its columns." },
    { AT(LhFormOp, a, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Coefficient of X in a Newton-Schulz step a X + b A X + c A A X, A = X X^T; "
                     "0 if absent, like the next two." },
    { AT(LhFormOp, b, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Coefficient of A X." },
    { AT(LhFormOp, c, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Coefficient of A A X." },
    { AT(LhFormOp, factor, DOUBLE), .min = 0, .max = FACTOR_MAX,
      .description = "Factor of an orthogonal update; 0 if absent." },
    { AT(LhFormOp, bytes, UINT), .min = 1, .max = SLOT_BYTES_MAX,
      .description = "Bytes of a copy between device and host." },
    { AT(LhFormOp, beside, UINT), .min = 0, .max = SLOT_BYTES_MAX,
      .description = "Further bytes that move with a copy, of memory that no slot holds; 0 if "
                     "absent." },
    { AT(LhFormOp, first, BOOL),
      .description = "Initialise the accumulators instead of adding to them." },
    { AT(LhFormOp, reversed, BOOL),
      .description = "Pair part i of the target with part i from the end of the source." },
    { AT(LhFormOp, states, UINT), .min = 0, .max = U32_MAX,
      .description = "Number of states that linear_prefix adds up; 0 if absent." },
    { AT(LhFormOp, scale, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Scale of the logits; the program's if absent, 1/sqrt(head_dim) if 0." },
    { AT(LhFormOp, decay, DOUBLE), .min = -FACTOR_MAX, .max = FACTOR_MAX,
      .description = "Decay of linear attention, per token; none if 0." },
    { AT(LhFormOp, messages, ARRAY), .min = 1, .max = 65535, .fields = message_fields,
      .element_size = sizeof(LhFormMessage), .element_init = init_message,
      .description = "Messages of an exchange, issued as one group." },
    { AT(LhFormOp, collective, CHOICE), .choices = lh_collective_names,
      .description = "Kind of a collective op." },
    { AT(LhFormOp, reduction, CHOICE), .choices = lh_reduction_names,
      .description = "Reduction operator; sum if absent." },
    { AT(LhFormOp, group, OBJECT), .fields = group_fields,
      .description = "Ranks base + i stride + j outer_stride." },
    { AT(LhFormOp, send, STRINGS), .flags = LH_FIELD_OR_ONE, .min = 1,
      .max = LH_COLLECTIVE_TENSORS_MAX,
      .description = "Send region of a collective, or one per tensor; written as in messages." },
    { AT(LhFormOp, receive, STRINGS), .flags = LH_FIELD_OR_ONE, .min = 1,
      .max = LH_COLLECTIVE_TENSORS_MAX,
      .description = "Receive region of a collective, or one per tensor; written as in messages." },
    { AT(LhFormOp, counts, UINTS), .min = 2, .max = COUNTS_MAX,
      .description = "Uneven all-to-all: for each tensor, the parts sent to each member of the "
                     "group, then the parts received from each." },
    { AT(LhFormOp, wire_bytes, UINT), .min = 0, .max = WIRE_BYTES_MAX,
      .description = "Bytes of this rank's contribution to a collective, over all tensors." },
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
      .description = "Ranks that share a pair of half-chunks, for placement zigzag; 1 if absent." },
    { AT(LhForm, head_slices, UINT), .min = 1, .max = U32_MAX,
      .description =
          "Slices of heads that q and tensors of its shape are split into; 1 if absent." },
    { AT(LhForm, kv_slices, UINT), .min = 1, .max = U32_MAX,
      .description = "Slices of heads that k and v are split into; 1 if absent." },
    { AT(LhForm, saved_group, UINT), .min = 1, .max = 1048576,
      .description = "Consecutive ranks that exchange heads, for slots with by_heads." },
    { AT(LhForm, saved, STRINGS), .min = 1, .max = LH_TENSOR_KINDS,
      .description = "Kinds of tensors whose input slots are all by_heads." },
    { .name = "closed_form",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhForm, stated),
      .fields = stated_fields,
      .description = "Totals that the program claims, checked by the verifier." },
    { AT(LhForm, slots, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 0, .max = 4096,
      .fields = slot_fields, .element_size = sizeof(LhFormSlot), .element_init = init_slot,
      .description = "Buffers of every rank." },
    { AT(LhForm, streams, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 1, .max = LH_STREAMS_MAX,
      .fields = stream_fields, .element_size = sizeof(LhFormStream),
      .description = "Streams (in-order queues) of every rank." },
    { AT(LhForm, ranks, ARRAY), .flags = LH_FIELD_REQUIRED, .min = 1, .max = 1048576,
      .fields = lh_form_rank_fields, .element_size = sizeof(LhFormRank),
      .description = "One program per rank." },
    END,
};
