/* SPDX-License-Identifier: Apache-2.0 */
#include "program/subprogram.h"

void
lh_subprogram_begin(LhEmitter *e, const LhSubprogram *embedding, uint32_t rank, uint32_t entry)
{
    LhCursor inner;

    g_assert(embedding->program->params.data_parallel_size <= 1);
    g_assert(e->program->generator->embeds); /* else cursors have no room for it */
    lh_cursor_init(&inner, embedding->program, rank);
    *e->embedded = (LhEmbeddedState){
        .state = inner.own,
        .first_id = e->state->next_id,
        .entry = entry,
        .also = { LH_OP_NONE, LH_OP_NONE },
    };
    for (unsigned i = 0; i < LH_STREAMS_MAX; i++)
        e->embedded->last[i] = e->embedded->last_outside[i] = LH_OP_NONE;
}

void
lh_subprogram_wait(LhEmitter *e, uint32_t id)
{
    uint32_t *also = e->embedded->also;

    also[also[0] == LH_OP_NONE ? 0 : 1] = id;
}

uint32_t
lh_subprogram_steps(const LhSubprogram *embedding, uint32_t rank)
{
    return embedding->program->generator->steps(embedding->program, rank);
}

static bool
is_outside(const LhProgram *program, const LhRegion *region)
{
    return program->slots[region->slot].role != LH_SLOT_TEMP;
}

bool
lh_subprogram_touches_outside(const LhProgram *program, const LhOp *op, const LhPart *parts)
{
    bool outside = false;

    if (op->kind == LH_OP_COMPUTE) {
        for (uint32_t i = 0; i < op->compute.regions_count; i++)
            outside |= is_outside(program, &op->compute.regions[i]);
    } else if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            const LhPart *part = &parts[op->exchange.parts_first + i];

            for (uint32_t k = 0; k < part->regions_count; k++)
                outside |= is_outside(program, &part->regions[k]);
        }
    } else if (op->kind == LH_OP_COLLECTIVE) {
        for (uint32_t i = 0; i < op->collective.tensors_count; i++)
            outside |= is_outside(program, &op->collective.send[i]) ||
                       is_outside(program, &op->collective.receive[i]);
    }
    return outside;
}

static void
rename_region(const LhSubprogram *embedding, LhRegion *region)
{
    if (embedding->parts != NULL)
        region->part += embedding->parts[region->slot];
    region->slot = embedding->slots[region->slot];
}

static void
rename_regions(const LhSubprogram *embedding, LhOp *op, LhPart *parts)
{
    if (op->kind == LH_OP_COMPUTE) {
        for (uint32_t i = 0; i < op->compute.regions_count; i++)
            rename_region(embedding, &op->compute.regions[i]);
    } else if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            LhPart *part = &parts[op->exchange.parts_first + i];

            for (uint32_t k = 0; k < part->regions_count; k++)
                rename_region(embedding, &part->regions[k]);
        }
    } else if (op->kind == LH_OP_COLLECTIVE) {
        for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
            rename_region(embedding, &op->collective.send[i]);
            rename_region(embedding, &op->collective.receive[i]);
        }
    } else if (op->kind == LH_OP_ALLOC || op->kind == LH_OP_FREE) {
        rename_region(embedding, &op->memory.region);
    }
}

static void
add_after(LhOp *op, uint32_t id)
{
    if (id == LH_OP_NONE)
        return;
    g_assert(op->after_count < LH_OP_AFTER_MAX);
    op->after[op->after_count++] = id;
}

/* Orders the first op of each stream after the entry, and what else the program waits for. */
static void
enter(LhEmbeddedState *s, LhOp *op)
{
    const uint32_t bit = UINT32_C(1) << op->stream;

    if (!lh_op_on_stream(op) || (s->streams_seen & bit) != 0)
        return;
    s->streams_seen |= bit;
    if (op->stream != 0)
        add_after(op, s->entry);
    for (unsigned i = 0; i < G_N_ELEMENTS(s->also); i++)
        add_after(op, s->also[i]);
}

static void
rename_op(LhEmitter *e, const LhSubprogram *embedding, LhOp *op)
{
    LhEmbeddedState *s = e->embedded;

    op->id += s->first_id;
    for (uint32_t i = 0; i < op->after_count; i++)
        op->after[i] += s->first_id;
    enter(s, op);
    if (lh_op_on_stream(op)) {
        s->last[op->stream] = op->id;
        if (op->stream != 0 &&
            lh_subprogram_touches_outside(embedding->program, op, e->buffer->parts))
            s->last_outside[op->stream] = op->id;
    }
    rename_regions(embedding, op, e->buffer->parts);
    op->stream = embedding->streams[op->stream];
    op->communicator = (uint8_t)(op->communicator + embedding->communicator);
    if (e->phase == LH_PHASE_RECOMPUTE)
        op->phase = LH_PHASE_RECOMPUTE;
    op->layer = e->layer;
    op->micro_batch = e->micro_batch;
    op->module = embedding->module;
}

void
lh_subprogram_step(LhEmitter *e, const LhSubprogram *embedding)
{
    LhEmbeddedState *s = e->embedded;
    const uint32_t first = e->buffer->ops_count, first_part = e->buffer->parts_count;
    LhEmitter inner = {
        .program = embedding->program,
        .buffer = e->buffer,
        .state = &s->state,
        .marks = s->state.marks,
        .rank = s->state.rank,
        .step = s->state.step,
        .phase = LH_PHASE_FORWARD,
    };

    g_assert(s->first_id + s->state.next_id == e->state->next_id);
    embedding->program->generator->emit(&inner, s->state.step++);
    for (uint32_t i = first; i < e->buffer->ops_count; i++)
        rename_op(e, embedding, &e->buffer->ops[i]);
    lh_ops_map_ranks(e->buffer, first, first_part, embedding->map);
    e->state->next_id = s->first_id + s->state.next_id;
}

void
lh_subprogram_after(LhEmitter *e, bool all)
{
    const uint32_t *last = all ? e->embedded->last : e->embedded->last_outside;

    for (unsigned i = 1; i < LH_STREAMS_MAX; i++)
        lh_emit_after(e, last[i]);
}
