/*
 * Writing programs in the explicit JSON form. Values that a reader can work out (the shape of the
 * attention, the pairs of a mask, defaults) are left out, so that a file is readable; reading puts
 * back the same program.
 */
#include "sched/explicit.h"

#include "base/error.h"
#include "base/jsonw.h"
#include "sched/schedule.h"

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
write_number_unless(LhJsonWriter *w, const char *key, uint64_t value, uint64_t usual)
{
    if (value != usual)
        lh_jsonw_uint(w, key, value);
}

static void
write_params(LhJsonWriter *w, const LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhAttention *a = &p->attention;

    lh_jsonw_object_begin(w, "params");
    lh_jsonw_uint(w, "ranks", p->ranks);
    write_number_unless(w, "data_parallel_size", MAX(p->data_parallel_size, 1), 1);
    lh_jsonw_uint(w, "batch", a->batch);
    lh_jsonw_uint(w, "seq_length", a->seq_length);
    lh_jsonw_uint(w, "heads", a->heads);
    lh_jsonw_uint(w, "groups", a->groups);
    lh_jsonw_uint(w, "head_dim", a->head_dim);
    lh_jsonw_string(w, "dtype", lh_dtype_names[a->dtype]);
    write_number_unless(w, "hidden_size", a->hidden_size, 0);
    lh_jsonw_bool(w, "causal", p->mask.causal);
    write_number_unless(w, "window", p->mask.window, 0);
    write_numbers(w, "document_ends", p->mask.document_ends, p->mask.documents_count);
    if (a->linear)
        lh_jsonw_bool(w, "linear", true);
    if (a->decay != 0)
        lh_jsonw_double(w, "decay", a->decay);
    lh_jsonw_string(w, "pass", lh_pass_names[p->pass - 1]);
    lh_jsonw_bool(w, "overlap", p->overlap);
    lh_jsonw_bool(w, "published_code", p->published_code);
    lh_jsonw_string(w, "gradient_wire", lh_wire_names[p->gradient_wire]);
    lh_jsonw_object_end(w);
    lh_jsonw_string(w, "placement", lh_placement_names[program->placement.kind]);
    write_number_unless(w, "placement_split", program->placement.split, 0);
    write_number_unless(w, "head_slices", MAX(program->head_slices, 1), 1);
    write_number_unless(w, "kv_slices", MAX(program->kv_slices, 1), 1);
    if (program->saved_kinds == 0)
        return;
    lh_jsonw_uint(w, "saved_group", program->saved_group);
    lh_jsonw_array_begin(w, "saved");
    for (unsigned kind = 0; kind < LH_TENSOR_KINDS; kind++) {
        if ((program->saved_kinds >> kind & 1) != 0)
            lh_jsonw_string(w, NULL, lh_tensor_names[kind]);
    }
    lh_jsonw_array_end(w);
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
        lh_jsonw_uint(w, "element_bytes", slot->element_bytes);
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
write_stated(LhJsonWriter *w, const LhProgram *program)
{
    const LhStatedForms *stated = &program->stated;
    const uint32_t ranks = lh_program_ranks(program);

    if (stated->bytes_sent == NULL && stated->flops == NULL && stated->peak_bytes == NULL)
        return;
    lh_jsonw_object_begin(w, "closed_form");
    write_numbers(w, "bytes_sent", stated->bytes_sent, ranks);
    write_numbers(w, "flops", stated->flops, ranks);
    write_numbers(w, "peak_bytes", stated->peak_bytes, ranks);
    lh_jsonw_object_end(w);
}

/* "kv" for a whole slot, "kv[1]" for a part, "kv[1..2]" for several. */
static void
write_region(LhJsonWriter *w, const char *key, const LhProgram *program, const LhRegion *region)
{
    const LhSlot *slot = &program->slots[region->slot];
    g_autofree char *text = NULL;

    if (region->part == 0 && region->count == slot->parts)
        text = g_strdup(slot->name);
    else if (region->count == 1)
        text = g_strdup_printf("%s[%u]", slot->name, region->part);
    else
        text = g_strdup_printf("%s[%u..%u]", slot->name, region->part,
                               region->part + region->count - 1);
    lh_jsonw_string(w, key, text);
}

static void
write_position(LhJsonWriter *w, const char *key, int64_t value, int64_t usual)
{
    if (value != usual)
        lh_jsonw_int(w, key, value);
}

static void
write_pairs(LhJsonWriter *w, const LhKernelArgs *args)
{
    if (args->mask != LH_MASK_POSITIONS) {
        write_number_unless(
            w, "pairs", args->pairs,
            lh_explicit_pairs((LhMaskKind)args->mask, args->shift, args->nq, args->nk));
        return;
    }
    lh_jsonw_uint(w, "pairs", args->pairs);
    lh_jsonw_int(w, "q_start", args->q_at.start);
    write_position(w, "q_part_step", args->q_at.part_step, 0);
    lh_jsonw_int(w, "k_start", args->k_at.start);
    write_position(w, "k_part_step", args->k_at.part_step, 0);
    write_position(w, "stride", (int64_t)args->stride, 1);
}

static void
write_args(LhJsonWriter *w, const LhProgram *program, const LhKernelArgs *args)
{
    const LhAttention *a = &program->params.attention;

    if (args->mask != LH_MASK_EMPTY)
        lh_jsonw_string(w, "mask", lh_mask_names[args->mask]);
    if (args->shift != 0)
        lh_jsonw_int(w, "shift", args->shift);
    write_number_unless(w, "nq", args->nq, 0);
    write_number_unless(w, "nk", args->nk, 0);
    write_pairs(w, args);
    write_number_unless(w, "batch", args->batch, a->batch);
    write_number_unless(w, "heads", args->heads, a->heads / MAX(program->head_slices, 1));
    write_number_unless(w, "groups", args->groups, a->groups / MAX(program->kv_slices, 1));
    write_number_unless(w, "head_dim", args->head_dim, a->head_dim);
    if (args->first)
        lh_jsonw_bool(w, "first", true);
    if (args->last)
        lh_jsonw_bool(w, "last", true);
    if (args->reversed)
        lh_jsonw_bool(w, "reversed", true);
    write_number_unless(w, "states", args->states, 0);
    if (args->scale != 0)
        lh_jsonw_double(w, "scale", args->scale);
    if (args->decay != 0)
        lh_jsonw_double(w, "decay", args->decay);
}

static void
write_compute(LhJsonWriter *w, const LhProgram *program, const LhOp *op)
{
    lh_jsonw_string(w, "kernel", lh_kernels[op->compute.kernel]->name);
    lh_jsonw_array_begin(w, "regions");
    for (unsigned i = 0; i < op->compute.regions_count; i++)
        write_region(w, NULL, program, &op->compute.regions[i]);
    lh_jsonw_array_end(w);
    write_args(w, program, &op->compute.args);
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

static void
write_collective(LhJsonWriter *w, const LhProgram *program, const LhOp *op)
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
    lh_jsonw_uint(w, "wire_bytes", op->collective.wire_bytes);
}

static void
write_op(LhJsonWriter *w, const LhProgram *program, const LhOp *op, const LhPart *parts)
{
    const bool memory = op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE;

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "op", lh_op_kind_names[op->kind]);
    if (op->phase != LH_PHASE_FORWARD)
        lh_jsonw_string(w, "phase", lh_phase_names[op->phase]);
    lh_jsonw_uint(w, "step", op->step);
    if (!memory && op->kind != LH_OP_SYNC)
        lh_jsonw_string(w, "stream", program->streams[op->stream].name);
    if (op->after_count > 0) {
        lh_jsonw_array_begin(w, "after");
        for (unsigned i = 0; i < op->after_count; i++)
            lh_jsonw_uint(w, NULL, op->after[i]);
        lh_jsonw_array_end(w);
    }
    if (memory)
        lh_jsonw_string(w, "slot", program->slots[op->memory.slot].name);
    else if (op->kind == LH_OP_COMPUTE)
        write_compute(w, program, op);
    else if (op->kind == LH_OP_EXCHANGE)
        write_exchange(w, program, op, parts);
    else if (op->kind == LH_OP_COLLECTIVE)
        write_collective(w, program, op);
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
            write_op(w, program, &buffer->ops[i], buffer->parts);
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
    write_stated(w, program);
    write_declarations(w, program);
    lh_jsonw_array_begin(w, "ranks");
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++)
        write_rank(w, program, rank, &buffer);
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
    lh_op_buffer_clear(&buffer);
    return true;
}
