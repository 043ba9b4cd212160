/*
 * Names of the IR's words, and the cursor: the one way to read a program, generated or explicit.
 */
#include "sched/ir.h"

#include "sched/explicit.h"
#include "sched/schedule.h"

const char *const lh_op_kind_names[] = {
    [LH_OP_COMPUTE] = "compute",
    [LH_OP_EXCHANGE] = "exchange",
    [LH_OP_COLLECTIVE] = "collective",
    [LH_OP_SYNC] = "sync",
    [LH_OP_ALLOC] = "alloc",
    [LH_OP_FREE] = "free",
    NULL,
};

const char *const lh_phase_names[] = {
    [LH_PHASE_FORWARD] = "forward",
    [LH_PHASE_BACKWARD] = "backward",
    NULL,
};

const char *const lh_collective_names[] = {
    [LH_COLL_ALL_GATHER] = "all-gather", [LH_COLL_REDUCE_SCATTER] = "reduce-scatter",
    [LH_COLL_ALL_REDUCE] = "all-reduce", [LH_COLL_ALL_TO_ALL] = "all-to-all",
    [LH_COLL_BROADCAST] = "broadcast",   NULL,
};

const char *const lh_pass_names[] = {
    [LH_PASS_FWD - 1] = "fwd",
    [LH_PASS_BWD - 1] = "bwd",
    [LH_PASS_BOTH - 1] = "both",
    NULL,
};

const char *const lh_wire_names[] = {
    [LH_WIRE_DEFAULT] = "default",
    [LH_WIRE_FP32] = "fp32",
    [LH_WIRE_16BIT] = "16bit",
    NULL,
};

const char *const lh_recompute_names[] = {
    [LH_RECOMPUTE_NONE] = "none",
    [LH_RECOMPUTE_SELECTIVE] = "selective",
    [LH_RECOMPUTE_FULL] = "full",
    NULL,
};

void
lh_op_buffer_clear(LhOpBuffer *buffer)
{
    g_free(buffer->ops);
    g_free(buffer->parts);
    *buffer = (LhOpBuffer){ 0 };
}

void
lh_cursor_init(LhCursor *cursor, const LhProgram *program, uint32_t rank)
{
    *cursor = (LhCursor){
        .program = program,
        .rank = rank,
        .group_first = rank - lh_program_group_rank(program, rank),
    };
    for (unsigned i = 0; i < LH_CURSOR_MARKS; i++)
        cursor->marks[i] = LH_OP_NONE;
}

/* What was emitted for the first group becomes that of the group from rank @first on. */
static void
move_to_group(LhOpBuffer *buffer, uint32_t first)
{
    for (uint32_t i = 0; i < buffer->parts_count; i++)
        buffer->parts[i].peer += first;
    for (uint32_t i = 0; i < buffer->ops_count; i++) {
        if (buffer->ops[i].kind == LH_OP_COLLECTIVE)
            buffer->ops[i].collective.group.base += first;
    }
}

bool
lh_cursor_step(LhCursor *cursor, LhOpBuffer *buffer)
{
    const LhProgram *program = cursor->program;
    const LhSchedule *generator = program->single ? &lh_single : program->schedule;
    LhEmitter emitter = {
        .cursor = cursor,
        .buffer = buffer,
        .program = program,
        .rank = cursor->rank - cursor->group_first,
        .step = cursor->step,
        .phase = LH_PHASE_FORWARD,
    };

    buffer->ops_count = 0;
    buffer->parts_count = 0;
    if (generator == NULL)
        return lh_explicit_step(cursor, buffer);
    if (cursor->step >= generator->steps(program, emitter.rank))
        return false;
    generator->emit(&emitter, cursor->step);
    if (cursor->group_first != 0)
        move_to_group(buffer, cursor->group_first);
    cursor->step++;
    return true;
}

void
lh_program_free(LhProgram *program)
{
    if (program == NULL)
        return;
    lh_explicit_free(program->explicit_ops);
    g_free(program->stated.bytes_sent);
    g_free(program->stated.flops);
    g_free(program->stated.peak_bytes);
    g_free(program->document_ends);
    g_free(program->plan);
    g_free(program->slots);
    g_free(program);
}

uint32_t
lh_program_ranks(const LhProgram *program)
{
    return lh_params_ranks(&program->params);
}

uint32_t
lh_program_group_rank(const LhProgram *program, uint32_t rank)
{
    return program->params.data_parallel_size > 1 ? rank % program->params.ranks : rank;
}

uint64_t
lh_region_bytes(const LhProgram *program, LhRegion region)
{
    return region.count * program->slots[region.slot].part_bytes;
}

bool
lh_tensor_is_kv(LhTensorKind kind)
{
    return kind == LH_TENSOR_KV || kind == LH_TENSOR_DKV || kind == LH_TENSOR_K ||
           kind == LH_TENSOR_V || kind == LH_TENSOR_DK || kind == LH_TENSOR_DV;
}

uint32_t
lh_program_slices(const LhProgram *program, LhTensorKind kind)
{
    if (kind == LH_TENSOR_HIDDEN || kind == LH_TENSOR_WEIGHT)
        return 1;
    return MAX(lh_tensor_is_kv(kind) ? program->kv_slices : program->head_slices, 1);
}

uint32_t
lh_slices_share(uint32_t slices, uint32_t ranks)
{
    return (slices - 1) / ranks + 1;
}

uint32_t
lh_slices_first(uint32_t slices, uint32_t ranks, uint32_t index)
{
    if (slices < ranks)
        return (uint32_t)((uint64_t)index * slices / ranks);
    return index * (slices / ranks) + MIN(index, slices % ranks);
}

static bool
is_saved_by_heads(const LhProgram *program, LhTensorKind kind)
{
    return (program->saved_kinds >> kind & 1) != 0;
}

uint32_t
lh_program_parts(const LhProgram *program, LhTensorKind kind)
{
    const uint32_t segments = lh_placement_parts(&program->placement);
    const uint32_t slices = lh_program_slices(program, kind);

    if (program->placement.kind == LH_PLACE_HEADS)
        return segments;
    if (is_saved_by_heads(program, kind))
        return segments * program->saved_group * lh_slices_share(slices, program->saved_group);
    return segments * slices;
}

/* Of the second halves of zigzag, the group's first rank has the last, unless it is split. */
static LhHolding
saved_holding(const LhProgram *program, uint32_t slices, uint32_t rank, uint32_t part)
{
    const LhPlacement *placement = &program->placement;
    const uint32_t ranks = program->saved_group;
    const uint32_t segments = ranks * lh_placement_parts(placement);
    const uint32_t slice = lh_slices_first(slices, ranks, rank % ranks) + part / segments;
    const uint32_t half = part % segments / ranks, index = part % ranks;
    const uint32_t member = half == 1 && placement->split <= 1 ? ranks - 1 - index : index;

    return (LhHolding){ lh_placement_segment_id(placement, rank - rank % ranks + member, half),
                        MIN(slice, slices - 1) };
}

LhHolding
lh_program_holding(const LhProgram *program, LhTensorKind kind, uint32_t rank_of_all, uint32_t part)
{
    const uint32_t rank = lh_program_group_rank(program, rank_of_all);
    const LhPlacement *placement = &program->placement;
    const uint32_t slices = lh_program_slices(program, kind);

    if (placement->kind == LH_PLACE_HEADS)
        return (LhHolding){ 0, lh_slices_first(slices, placement->ranks, rank) };
    if (is_saved_by_heads(program, kind))
        return saved_holding(program, slices, rank, part);
    return (LhHolding){ lh_placement_segment_id(placement, rank, part / slices), part % slices };
}
