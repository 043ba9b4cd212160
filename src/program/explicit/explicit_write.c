/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes programs in the explicit JSON form, with the tables that read it. Values that a reader can
 * compute (shape of the attention, pairs of a mask, defaults) are left out to keep files readable;
 * reading restores the same program. Ops are converted and written one by one, because there may be
 * a million of them.
 */
#include "program/explicit/explicit_write.h"

#include "base/error.h"
#include "base/json/json_encode.h"
#include "program/cursor.h"
#include "program/explicit/explicit_args.h"
#include "program/op_names.h"

/* ---- declarations ---- */

/* Returns NULL if there are none. Caller frees. */
static GArray *
copy_numbers(const uint64_t *numbers, uint32_t count)
{
    GArray *copy;

    if (numbers == NULL)
        return NULL;
    copy = g_array_sized_new(FALSE, FALSE, sizeof(*numbers), count);
    g_array_append_vals(copy, numbers, count);
    return copy;
}

/* Returns NULL if there are none. Caller frees. */
static GPtrArray *
copy_record(const LhProgram *program)
{
    GPtrArray *copy;

    if (program->record == NULL || program->record[0] == NULL)
        return NULL;
    copy = g_ptr_array_new_with_free_func(g_free);
    for (char **text = program->record; *text != NULL; text++)
        g_ptr_array_add(copy, g_strdup(*text));
    return copy;
}

/* Maps 1 to 0, which is written as absent. */
static uint64_t
several(uint64_t count)
{
    return count > 1 ? count : 0;
}

static void
note_params(const LhProgram *program, LhFormParams *form)
{
    const LhProgramParams *p = &program->params;
    const LhAttention *a = &p->attention;

    form->ranks = p->ranks;
    form->data_parallel_size = several(p->data_parallel_size);
    form->batch = a->batch;
    form->seq_length = a->seq_length;
    form->heads = a->heads;
    form->groups = a->groups;
    form->head_dim = a->head_dim;
    form->dtype = (int)a->dtype;
    form->hidden_size = a->hidden_size;
    form->causal = p->mask.causal;
    form->window = p->mask.window;
    form->document_ends = copy_numbers(p->mask.document_ends, p->mask.documents_count);
    form->scale = a->scale;
    form->linear = a->linear;
    form->decay = a->decay;
    form->pass = (int)p->pass - 1;
    form->keep_saved = p->keep_saved;
    form->options = copy_record(program);
}

/* Whether a reader cannot infer the type from the size of an element. */
static bool
is_unusual(const LhProgram *program, LhDtype dtype)
{
    const LhDtype activation = program->params.attention.dtype;

    return dtype != activation && dtype != LH_DTYPE_INT8 &&
           (dtype != LH_DTYPE_FP32 || lh_dtype_bytes(activation) == lh_dtype_bytes(dtype));
}

static void
note_slot(const LhProgram *program, const LhSlot *slot, LhFormSlot *form)
{
    const uint64_t usual = program->params.attention.head_dim;

    form->name = g_strdup(slot->name);
    form->kind = (int)slot->kind;
    form->role = (int)slot->role;
    form->parts = slot->parts;
    form->part_bytes = slot->part_bytes;
    form->element_bytes = lh_slot_element_bytes(slot);
    form->dtype = is_unusual(program, slot->dtype) ? (int)slot->dtype : LH_FORM_NO_CHOICE;
    form->head_dim = slot->head_dim == usual ? 0 : slot->head_dim;
    form->by_heads = slot->by_heads;
    form->on_host = slot->on_host;
}

/* Caller frees. */
static GArray *
note_slots(const LhProgram *program)
{
    GArray *slots = g_array_new(FALSE, TRUE, sizeof(LhFormSlot));

    g_array_set_size(slots, program->slots_count);
    for (uint32_t i = 0; i < program->slots_count; i++)
        note_slot(program, &program->slots[i], &g_array_index(slots, LhFormSlot, i));
    return slots;
}

/* Caller frees. */
static GArray *
note_streams(const LhProgram *program)
{
    GArray *streams = g_array_new(FALSE, FALSE, sizeof(LhFormStream));

    for (uint32_t i = 0; i < program->streams_count; i++) {
        const LhFormStream stream = { .name = g_strdup(program->streams[i].name),
                                      .kind = (int)program->streams[i].kind };

        g_array_append_val(streams, stream);
    }
    return streams;
}

/* The program's claimed totals, one per rank. NULL: none. Caller frees. */
static GArray *
note_claim(const LhProgram *program, LhClaim claim)
{
    GArray *values;
    uint64_t value;

    if (!lh_program_claim(program, claim, 0, &value))
        return NULL;
    values = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        lh_program_claim(program, claim, rank, &value);
        g_array_append_val(values, value);
    }
    return values;
}

/* Everything except the ranks. Caller clears. */
static LhForm
note_program(const LhProgram *program)
{
    LhForm form = lh_form_new();

    form.schema = g_strdup(LH_EXPLICIT_SCHEMA);
    note_params(program, &form.params);
    form.placement = (int)program->placement.kind;
    form.placement_split = program->placement.split;
    form.head_slices = several(program->head_slices);
    form.kv_slices = several(program->kv_slices);
    form.saved_group = program->saved_group;
    form.stated.bytes_sent = note_claim(program, LH_CLAIM_BYTES_SENT);
    form.stated.flops = note_claim(program, LH_CLAIM_FLOPS);
    form.stated.peak_bytes = note_claim(program, LH_CLAIM_PEAK_BYTES);
    form.slots = note_slots(program);
    form.streams = note_streams(program);
    return form;
}

/* ---- ops ---- */

/* Writes ops; the lists are reused from op to op. */
typedef struct {
    const LhProgram *program;
    LhOpBuffer buffer;
    LhFormOrder order;
    GArray *after, *counts, *messages;
    GPtrArray *regions, *received;
} Writer;

static void
clear_message(gpointer message)
{
    g_ptr_array_unref(((LhFormMessage *)message)->regions);
}

static Writer *
writer_new(const LhProgram *program)
{
    Writer *writer = g_new0(Writer, 1);

    writer->program = program;
    lh_form_order_init(&writer->order);
    writer->after = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    writer->counts = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    writer->messages = g_array_new(FALSE, FALSE, sizeof(LhFormMessage));
    g_array_set_clear_func(writer->messages, clear_message);
    writer->regions = g_ptr_array_new_with_free_func(g_free);
    writer->received = g_ptr_array_new_with_free_func(g_free);
    return writer;
}

static void
writer_free(Writer *writer)
{
    lh_op_buffer_clear(&writer->buffer);
    g_array_unref(writer->after);
    g_array_unref(writer->counts);
    g_array_unref(writer->messages);
    g_ptr_array_unref(writer->regions);
    g_ptr_array_unref(writer->received);
    g_free(writer);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Writer, writer_free)

/* Fills @texts with the texts of the regions and returns it. */
static GPtrArray *
note_regions(const Writer *writer, const LhRegion *regions, unsigned count, GPtrArray *texts)
{
    g_ptr_array_set_size(texts, 0);
    for (unsigned i = 0; i < count; i++)
        g_ptr_array_add(texts, lh_region_text(writer->program, &regions[i]));
    return texts;
}

static GArray *
note_numbers(const uint32_t *numbers, uint64_t count, GArray *copy)
{
    g_array_set_size(copy, (guint)count);
    for (uint64_t i = 0; i < count; i++)
        g_array_index(copy, uint64_t, i) = numbers[i];
    return copy;
}

static void
note_compute(Writer *writer, const LhOp *op, LhFormOp *form)
{
    form->kernel = (char *)lh_kernels[op->compute.kernel]->name;
    form->regions =
        note_regions(writer, op->compute.regions, op->compute.regions_count, writer->regions);
    lh_form_note_args(writer->program, op, form);
}

static void
note_message(const Writer *writer, const LhPart *part, LhFormMessage *form)
{
    *form = (LhFormMessage){
        .to = part->send ? part->peer : LH_FORM_ABSENT,
        .from = part->send ? LH_FORM_ABSENT : part->peer,
        .tag = part->tag,
        .wire_bytes = part->wire_bytes,
        .regions = note_regions(writer, part->regions, part->regions_count,
                                g_ptr_array_new_with_free_func(g_free)),
    };
}

static void
note_exchange(Writer *writer, const LhOp *op, LhFormOp *form)
{
    const LhPart *parts = &writer->buffer.parts[op->exchange.parts_first];

    g_array_set_size(writer->messages, 0);
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        LhFormMessage message;

        note_message(writer, &parts[i], &message);
        g_array_append_val(writer->messages, message);
    }
    form->messages = writer->messages;
}

static void
note_collective(Writer *writer, const LhOp *op, LhFormOp *form)
{
    const LhGroup *group = &op->collective.group;
    const unsigned tensors = op->collective.tensors_count;

    form->collective = (int)op->collective.kind;
    form->reduction = (int)op->collective.reduction;
    form->group = (LhFormGroup){ group->base, group->stride, group->count, group->outer_stride,
                                 group->outer_count };
    form->send = note_regions(writer, op->collective.send, tensors, writer->regions);
    form->receive = note_regions(writer, op->collective.receive, tensors, writer->received);
    if (op->collective.uneven)
        form->counts = note_numbers(writer->buffer.counts + op->collective.counts_first,
                                    2 * lh_group_size(group) * tensors, writer->counts);
    form->wire_bytes = op->collective.wire_bytes;
}

static void
note_labels(Writer *writer, const LhOp *op, LhFormOp *form)
{
    form->op = op->kind;
    form->phase = op->phase;
    form->step = op->step;
    form->layer = op->layer;
    form->micro_batch = op->micro_batch;
    form->module = op->module;
    if (op->kind == LH_OP_EXCHANGE || op->kind == LH_OP_COLLECTIVE)
        form->communicator = op->communicator;
    if (op->after_count > 0)
        form->after = note_numbers(op->after, op->after_count, writer->after);
}

/* Converts an op. Strings that the writer does not own are borrowed from the program. */
static void
note_op(Writer *writer, const LhOp *op, LhFormOp *form)
{
    note_labels(writer, op, form);
    if (op->kind == LH_OP_SYNC)
        return;
    if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE) {
        form->slot = note_regions(writer, &op->memory.region, 1, writer->regions)->pdata[0];
        return;
    }
    form->stream = (char *)writer->program->streams[op->stream].name;
    if (op->kind == LH_OP_COMPUTE)
        note_compute(writer, op, form);
    else if (op->kind == LH_OP_EXCHANGE)
        note_exchange(writer, op, form);
    else
        note_collective(writer, op, form);
}

static void
write_op(Writer *writer, const LhOp *op, LhJsonWriter *w)
{
    LhFormOp form = writer->order.usual;

    note_op(writer, op, &form);
    lh_json_encode(w, NULL, lh_form_order_of(&writer->order, op), &form, &writer->order.usual);
}

/* ---- the document ---- */

static bool
count_ops(const LhProgram *program, GError **error)
{
    LhOpBuffer buffer = { 0 };
    uint64_t ops = 0, parts = 0;

    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        LhCursor cursor;

        lh_cursor_init(&cursor, program, rank);
        while (ops <= LH_EXPLICIT_OPS_MAX && parts <= LH_EXPLICIT_PARTS_MAX &&
               lh_cursor_step(&cursor, &buffer)) {
            ops += buffer.ops_count;
            parts += buffer.parts_count;
        }
    }
    lh_op_buffer_clear(&buffer);
    if (ops <= LH_EXPLICIT_OPS_MAX && parts <= LH_EXPLICIT_PARTS_MAX)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "the explicit form holds at most %u ops and %u messages; this program has more: "
                "use fewer ranks",
                LH_EXPLICIT_OPS_MAX, LH_EXPLICIT_PARTS_MAX);
    return false;
}

static void
write_rank(Writer *writer, uint32_t rank, LhJsonWriter *w)
{
    LhCursor cursor;

    lh_cursor_init(&cursor, writer->program, rank);
    lh_json_encode_open(w, NULL, lh_form_rank_fields, NULL, NULL);
    while (lh_cursor_step(&cursor, &writer->buffer)) {
        for (uint32_t i = 0; i < writer->buffer.ops_count; i++)
            write_op(writer, &writer->buffer.ops[i], w);
    }
    lh_json_encode_close(w);
}

bool
lh_program_write(const LhProgram *program, GString *out, GError **error)
{
    const LhForm usual = lh_form_new();
    g_autoptr(LhJsonWriter) w = NULL;
    g_autoptr(Writer) writer = NULL;
    LhForm form;

    if (!count_ops(program, error))
        return false;
    w = lh_jsonw_new(out, false);
    writer = writer_new(program);
    form = note_program(program);
    lh_json_encode_open(w, NULL, lh_program_fields, &form, &usual);
    lh_json_clear(lh_program_fields, &form);
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++)
        write_rank(writer, rank, w);
    lh_json_encode_close(w);
    return true;
}
