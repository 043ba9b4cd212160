/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing programs in the explicit JSON form. Values that a reader can work out (the shape of the
 * attention, the pairs of a mask, defaults) are left out, so that a file is readable; reading puts
 * back the same program.
 */
#include "program/explicit/explicit_write.h"

#include "base/error.h"
#include "base/json/json_writer.h"
#include "program/cursor.h"
#include "program/explicit/explicit_args.h"
#include "program/explicit/explicit_fields.h"
#include "program/op_names.h"

static void
write_numbers(LhJsonWriter *w, const char *key, const uint64_t *numbers, uint32_t count)
{
    if (numbers == NULL)
        return;
    lh_jsonw_array_begin(w, key);
    for (uint32_t i = 0; i < count; i++)
        lh_jsonw_uint(w, NULL, numbers[i]);
    lh_jsonw_array_end(w);
}

static void
write_record(LhJsonWriter *w, const LhProgram *program)
{
    if (program->record == NULL || program->record[0] == NULL)
        return;
    lh_jsonw_array_begin(w, "options");
    for (char **text = program->record; *text != NULL; text++)
        lh_jsonw_string(w, NULL, *text);
    lh_jsonw_array_end(w);
}

static void
write_params(LhJsonWriter *w, const LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhAttention *a = &p->attention;

    lh_jsonw_object_begin(w, "params");
    lh_jsonw_uint(w, "ranks", p->ranks);
    lh_jsonw_uint_unless(w, "data_parallel_size", MAX(p->data_parallel_size, 1), 1);
    lh_jsonw_uint(w, "batch", a->batch);
    lh_jsonw_uint(w, "seq_length", a->seq_length);
    lh_jsonw_uint(w, "heads", a->heads);
    lh_jsonw_uint(w, "groups", a->groups);
    lh_jsonw_uint(w, "head_dim", a->head_dim);
    lh_jsonw_string(w, "dtype", lh_dtype_names[a->dtype]);
    lh_jsonw_uint_unless(w, "hidden_size", a->hidden_size, 0);
    lh_jsonw_bool(w, "causal", p->mask.causal);
    lh_jsonw_uint_unless(w, "window", p->mask.window, 0);
    write_numbers(w, "document_ends", p->mask.document_ends, p->mask.documents_count);
    if (a->scale != 0)
        lh_jsonw_double(w, "scale", a->scale);
    if (a->linear)
        lh_jsonw_bool(w, "linear", true);
    if (a->decay != 0)
        lh_jsonw_double(w, "decay", a->decay);
    lh_jsonw_string(w, "pass", lh_pass_names[p->pass - 1]);
    if (p->keep_saved)
        lh_jsonw_bool(w, "keep_saved", true);
    write_record(w, program);
    lh_jsonw_object_end(w);
    lh_jsonw_string(w, "placement", lh_placement_names[program->placement.kind]);
    lh_jsonw_uint_unless(w, "placement_split", program->placement.split, 0);
    lh_jsonw_uint_unless(w, "head_slices", MAX(program->head_slices, 1), 1);
    lh_jsonw_uint_unless(w, "kv_slices", MAX(program->kv_slices, 1), 1);
    lh_jsonw_uint_unless(w, "saved_group", program->saved_group, 0);
}

/* Whether the bytes of an element do not tell its type. */
static bool
is_unusual(const LhProgram *program, LhDtype dtype)
{
    const LhDtype activation = program->params.attention.dtype;

    return dtype != activation &&
           (dtype != LH_DTYPE_FP32 || lh_dtype_bytes(activation) == lh_dtype_bytes(dtype));
}

static void
write_declarations(LhJsonWriter *w, const LhProgram *program)
{
    lh_jsonw_array_begin(w, "slots");
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "name", slot->name);
        lh_jsonw_string(w, "kind", lh_tensor_names[slot->kind]);
        lh_jsonw_string(w, "role", lh_role_names[slot->role]);
        lh_jsonw_uint(w, "parts", slot->parts);
        lh_jsonw_uint(w, "part_bytes", slot->part_bytes);
        lh_jsonw_uint(w, "element_bytes", lh_slot_element_bytes(slot));
        if (is_unusual(program, slot->dtype))
            lh_jsonw_string(w, "dtype", lh_dtype_names[slot->dtype]);
        if (slot->head_dim != program->params.attention.head_dim)
            lh_jsonw_uint(w, "head_dim", slot->head_dim);
        if (slot->by_heads)
            lh_jsonw_bool(w, "by_heads", true);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
    lh_jsonw_array_begin(w, "streams");
    for (uint32_t i = 0; i < program->streams_count; i++) {
        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "name", program->streams[i].name);
        lh_jsonw_string(w, "kind", lh_stream_kind_names[program->streams[i].kind]);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_claim(LhJsonWriter *w, const char *key, const LhProgram *program, LhClaim claim)
{
    uint64_t value;

    if (!lh_program_claim(program, claim, 0, &value))
        return;
    lh_jsonw_array_begin(w, key);
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        lh_program_claim(program, claim, rank, &value);
        lh_jsonw_uint(w, NULL, value);
    }
    lh_jsonw_array_end(w);
}

/* What a schedule says of its program goes with it. */
static void
write_claims(LhJsonWriter *w, const LhProgram *program)
{
    lh_jsonw_object_begin(w, "closed_form");
    write_claim(w, "bytes_sent", program, LH_CLAIM_BYTES_SENT);
    write_claim(w, "flops", program, LH_CLAIM_FLOPS);
    write_claim(w, "peak_bytes", program, LH_CLAIM_PEAK_BYTES);
    lh_jsonw_object_end(w);
}

static void
write_region(LhJsonWriter *w, const char *key, const LhProgram *program, const LhRegion *region)
{
    g_autofree char *text = lh_region_text(program, region);

    lh_jsonw_string(w, key, text);
}

static void
write_compute(LhJsonWriter *w, const LhProgram *program, const LhOp *op)
{
    lh_jsonw_string(w, "kernel", lh_kernels[op->compute.kernel]->name);
    lh_jsonw_array_begin(w, "regions");
    for (unsigned i = 0; i < op->compute.regions_count; i++)
        write_region(w, NULL, program, &op->compute.regions[i]);
    lh_jsonw_array_end(w);
    lh_form_write_args(w, program, op);
}

static void
write_exchange(LhJsonWriter *w, const LhProgram *program, const LhOp *op, const LhPart *parts)
{
    lh_jsonw_array_begin(w, "messages");
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &parts[op->exchange.parts_first + i];

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_uint(w, part->send ? "to" : "from", part->peer);
        lh_jsonw_uint(w, "tag", part->tag);
        lh_jsonw_uint(w, "wire_bytes", part->wire_bytes);
        lh_jsonw_array_begin(w, "regions");
        for (unsigned k = 0; k < part->regions_count; k++)
            write_region(w, NULL, program, &part->regions[k]);
        lh_jsonw_array_end(w);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

/* The region of a collective of one tensor stands alone. */
static void
write_tensors(LhJsonWriter *w, const char *key, const LhProgram *program, const LhRegion *regions,
              unsigned count)
{
    if (count == 1) {
        write_region(w, key, program, &regions[0]);
        return;
    }
    lh_jsonw_array_begin(w, key);
    for (unsigned i = 0; i < count; i++)
        write_region(w, NULL, program, &regions[i]);
    lh_jsonw_array_end(w);
}

/* Those of an all-to-all of unequal pieces. */
static void
write_counts(LhJsonWriter *w, const LhOp *op, const uint32_t *counts)
{
    const uint64_t count = 2 * lh_group_size(&op->collective.group) * op->collective.tensors_count;

    if (!op->collective.uneven)
        return;
    lh_jsonw_array_begin(w, "counts");
    for (uint64_t i = 0; i < count; i++)
        lh_jsonw_uint(w, NULL, counts[op->collective.counts_first + i]);
    lh_jsonw_array_end(w);
}

static void
write_collective(LhJsonWriter *w, const LhProgram *program, const LhOp *op, const uint32_t *counts)
{
    const LhGroup *group = &op->collective.group;

    lh_jsonw_string(w, "collective", lh_collective_names[op->collective.kind]);
    lh_jsonw_string(w, "reduction", lh_reduction_names[op->collective.reduction]);
    lh_jsonw_object_begin(w, "group");
    lh_jsonw_uint(w, "base", group->base);
    lh_jsonw_uint(w, "stride", group->stride);
    lh_jsonw_uint(w, "count", group->count);
    lh_jsonw_uint(w, "outer_stride", group->outer_stride);
    lh_jsonw_uint(w, "outer_count", group->outer_count);
    lh_jsonw_object_end(w);
    write_tensors(w, "send", program, op->collective.send, op->collective.tensors_count);
    write_tensors(w, "receive", program, op->collective.receive, op->collective.tensors_count);
    write_counts(w, op, counts);
    lh_jsonw_uint(w, "wire_bytes", op->collective.wire_bytes);
}

static void
write_labels(LhJsonWriter *w, const LhOp *op)
{
    if (op->phase != LH_PHASE_FORWARD)
        lh_jsonw_string(w, "phase", lh_phase_names[op->phase]);
    lh_jsonw_uint(w, "step", op->step);
    lh_jsonw_uint_unless(w, "layer", op->layer, 0);
    lh_jsonw_uint_unless(w, "micro_batch", op->micro_batch, 0);
    lh_jsonw_uint_unless(w, "module", op->module, 0);
    if (op->kind == LH_OP_EXCHANGE || op->kind == LH_OP_COLLECTIVE)
        lh_jsonw_uint_unless(w, "communicator", op->communicator, 0);
}

static void
write_op(LhJsonWriter *w, const LhProgram *program, const LhOp *op, const LhOpBuffer *buffer)
{
    const bool memory = op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE;

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "op", lh_op_kind_names[op->kind]);
    write_labels(w, op);
    if (!memory && op->kind != LH_OP_SYNC)
        lh_jsonw_string(w, "stream", program->streams[op->stream].name);
    if (op->after_count > 0) {
        lh_jsonw_array_begin(w, "after");
        for (unsigned i = 0; i < op->after_count; i++)
            lh_jsonw_uint(w, NULL, op->after[i]);
        lh_jsonw_array_end(w);
    }
    if (memory)
        write_region(w, "slot", program, &op->memory.region);
    else if (op->kind == LH_OP_COMPUTE)
        write_compute(w, program, op);
    else if (op->kind == LH_OP_EXCHANGE)
        write_exchange(w, program, op, buffer->parts);
    else if (op->kind == LH_OP_COLLECTIVE)
        write_collective(w, program, op, buffer->counts);
    lh_jsonw_object_end(w);
}

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
                "take fewer ranks",
                LH_EXPLICIT_OPS_MAX, LH_EXPLICIT_PARTS_MAX);
    return false;
}

static void
write_rank(LhJsonWriter *w, const LhProgram *program, uint32_t rank, LhOpBuffer *buffer)
{
    LhCursor cursor;

    lh_cursor_init(&cursor, program, rank);
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_array_begin(w, "ops");
    while (lh_cursor_step(&cursor, buffer)) {
        for (uint32_t i = 0; i < buffer->ops_count; i++)
            write_op(w, program, &buffer->ops[i], buffer);
    }
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

bool
lh_program_write(const LhProgram *program, GString *out, GError **error)
{
    g_autoptr(LhJsonWriter) w = NULL;
    LhOpBuffer buffer = { 0 };

    if (!count_ops(program, error))
        return false;
    w = lh_jsonw_new(out, false);
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", LH_EXPLICIT_SCHEMA);
    write_params(w, program);
    write_claims(w, program);
    write_declarations(w, program);
    lh_jsonw_array_begin(w, "ranks");
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++)
        write_rank(w, program, rank, &buffer);
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
    lh_op_buffer_clear(&buffer);
    return true;
}
