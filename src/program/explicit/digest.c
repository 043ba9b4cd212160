/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes field by field, because structs contain padding. */
#include "program/explicit/digest.h"

#include "base/json/json_encode.h"
#include "program/cursor.h"
#include "program/explicit/explicit_args.h"

typedef struct {
    GChecksum *sum;
    const LhProgram *program;
    const LhFormOrder *order;
    GString *text; /* the arguments of an op */
} Digest;

static void
digest_numbers(GChecksum *sum, const uint64_t *numbers, size_t count)
{
    g_checksum_update(sum, (const guchar *)numbers, (gssize)(count * sizeof(*numbers)));
}

static void
digest_number(GChecksum *sum, uint64_t number)
{
    digest_numbers(sum, &number, 1);
}

static void
digest_regions(GChecksum *sum, const LhRegion *regions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t numbers[] = { regions[i].slot, regions[i].part, regions[i].count,
                                     regions[i].half };

        digest_numbers(sum, numbers, G_N_ELEMENTS(numbers));
    }
}

static void
digest_exchange(GChecksum *sum, const LhOp *op, const LhOpBuffer *buffer)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
        const uint64_t numbers[] = { part->peer, part->tag, part->send, part->wire_bytes };

        digest_numbers(sum, numbers, G_N_ELEMENTS(numbers));
        digest_regions(sum, part->regions, part->regions_count);
    }
}

static void
digest_collective(GChecksum *sum, const LhOp *op, const LhOpBuffer *buffer)
{
    const LhGroup group = lh_group_canonical(op->collective.group);
    const uint32_t tensors = op->collective.tensors_count;
    const uint64_t numbers[] = { op->collective.kind, op->collective.reduction,
                                 group.base,          group.stride,
                                 group.count,         group.outer_stride,
                                 group.outer_count,   op->collective.uneven };
    const uint64_t counts = op->collective.uneven ? 2 * lh_group_size(&group) * tensors : 0;

    digest_numbers(sum, numbers, G_N_ELEMENTS(numbers));
    digest_regions(sum, op->collective.send, tensors);
    digest_regions(sum, op->collective.receive, tensors);
    for (uint64_t i = 0; i < counts; i++)
        digest_number(sum, buffer->counts[op->collective.counts_first + i]);
}

/* Hashes the arguments in the form that files have. */
static void
digest_args(const Digest *digest, const LhOp *op)
{
    const LhArgsKind kind = lh_kernels[op->compute.kernel]->args;
    LhFormOp form = digest->order->usual;
    LhJsonWriter *w = lh_jsonw_new(g_string_truncate(digest->text, 0), true);

    lh_form_note_args(lh_program_of_op(digest->program, op), op, &form);
    lh_json_encode(w, NULL, digest->order->of_args[kind].fields, &form, &digest->order->usual);
    lh_jsonw_free(w);
    g_checksum_update(digest->sum, (const guchar *)digest->text->str, (gssize)digest->text->len);
}

static void
digest_op(const Digest *digest, const LhOp *op, const LhOpBuffer *buffer)
{
    GChecksum *sum = digest->sum;
    const uint64_t numbers[] = { op->id,           op->kind,        op->stream,
                                 op->communicator, op->after_count, op->module };

    digest_numbers(sum, numbers, G_N_ELEMENTS(numbers));
    for (uint32_t i = 0; i < op->after_count; i++)
        digest_number(sum, op->after[i]);
    if (op->kind == LH_OP_COMPUTE) {
        digest_number(sum, op->compute.kernel);
        digest_args(digest, op);
        digest_regions(sum, op->compute.regions, op->compute.regions_count);
    } else if (op->kind == LH_OP_EXCHANGE) {
        digest_exchange(sum, op, buffer);
    } else if (op->kind == LH_OP_COLLECTIVE) {
        digest_collective(sum, op, buffer);
    } else if (op->kind != LH_OP_SYNC) {
        digest_regions(sum, &op->memory.region, 1);
    }
}

/* ---- what ops reference by number ---- */

static void
digest_slots(GChecksum *sum, const LhProgram *program)
{
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];
        const uint64_t numbers[] = { slot->kind, slot->role, slot->dtype, slot->parts,
                                     slot->part_bytes };

        g_checksum_update(sum, (const guchar *)slot->name, -1);
        digest_numbers(sum, numbers, G_N_ELEMENTS(numbers));
    }
}

static void
digest_case(GChecksum *sum, const LhProgram *program)
{
    const LhProgramParams *p = &program->params;
    const LhAttention *a = &p->attention;
    const uint64_t numbers[] = { a->batch,
                                 a->seq_length,
                                 a->heads,
                                 a->groups,
                                 a->head_dim,
                                 a->dtype,
                                 a->linear,
                                 a->hidden_size,
                                 p->mask.causal,
                                 p->mask.window,
                                 p->mask.documents_count,
                                 p->pass,
                                 MAX(p->data_parallel_size, 1),
                                 program->placement.kind,
                                 MAX(program->head_slices, 1),
                                 MAX(program->kv_slices, 1) };
    const double reals[] = { a->decay, a->scale };

    digest_numbers(sum, numbers, G_N_ELEMENTS(numbers));
    g_checksum_update(sum, (const guchar *)reals, sizeof(reals));
    digest_numbers(sum, p->mask.document_ends, p->mask.documents_count);
}

static void
digest_rank(const Digest *digest, uint32_t rank)
{
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    lh_cursor_init(&cursor, digest->program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++)
            digest_op(digest, &buffer.ops[i], &buffer);
    }
    lh_op_buffer_clear(&buffer);
}

char *
lh_program_digest(const LhProgram *program)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree LhFormOrder *order = g_new(LhFormOrder, 1);
    g_autoptr(GString) text = g_string_new(NULL);
    const Digest digest = { sum, program, order, text };

    lh_form_order_init(order);
    digest_case(sum, program);
    for (uint32_t i = 0; i < program->modules_count; i++) {
        if (program->modules[i] != NULL)
            digest_case(sum, program->modules[i]);
    }
    digest_slots(sum, program);
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++)
        digest_rank(&digest, rank);
    return g_strdup(g_checksum_get_string(sum));
}
