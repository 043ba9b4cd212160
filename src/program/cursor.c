/* SPDX-License-Identifier: Apache-2.0 */
#include "program/cursor.h"

#include "program/emit.h"

void
lh_cursor_init(LhCursor *cursor, const LhProgram *program, uint32_t rank)
{
    const uint32_t own =
        program->generator->of_all_groups ? rank : lh_program_group_rank(program, rank);

    cursor->program = program;
    cursor->rank = rank;
    cursor->map = (LhRankMap){ .base = rank - own, .stride = 1 };
    cursor->own = (LhCursorState){ .rank = own };
    for (unsigned i = 0; i < LH_CURSOR_MARKS; i++)
        cursor->own.marks[i] = LH_OP_NONE;
    if (!program->generator->embeds)
        return;
    cursor->embedded = (LhEmbeddedState){ 0 };
    for (unsigned i = 0; i < LH_STREAMS_MAX; i++)
        cursor->embedded.last[i] = cursor->embedded.last_outside[i] = LH_OP_NONE;
}

void
lh_ops_map_ranks(LhOpBuffer *buffer, uint32_t first, uint32_t first_part, LhRankMap map)
{
    if (map.base == 0 && map.stride == 1)
        return;
    for (uint32_t i = first_part; i < buffer->parts_count; i++)
        buffer->parts[i].peer = lh_rank_map(map, buffer->parts[i].peer);
    for (uint32_t i = first; i < buffer->ops_count; i++) {
        LhOp *op = &buffer->ops[i];

        if (op->kind == LH_OP_COLLECTIVE)
            op->collective.group = lh_group_map(map, op->collective.group);
    }
}

bool
lh_cursor_step(LhCursor *cursor, LhOpBuffer *buffer)
{
    const LhProgram *program = cursor->program;
    LhEmitter emitter = {
        .program = program,
        .buffer = buffer,
        .state = &cursor->own,
        .embedded = &cursor->embedded,
        .marks = cursor->own.marks,
        .rank = cursor->own.rank,
        .step = cursor->own.step,
        .phase = LH_PHASE_FORWARD,
    };

    buffer->ops_count = 0;
    buffer->parts_count = 0;
    buffer->counts_count = 0;
    if (cursor->own.step >= program->generator->steps(program, cursor->own.rank))
        return false;
    program->generator->emit(&emitter, cursor->own.step);
    if (cursor->map.base != 0)
        lh_ops_map_ranks(buffer, 0, 0, cursor->map);
    cursor->own.step++;
    return true;
}
