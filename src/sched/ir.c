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
    *cursor = (LhCursor){ .program = program, .rank = rank };
    for (unsigned i = 0; i < LH_CURSOR_MARKS; i++)
        cursor->marks[i] = LH_OP_NONE;
}

bool
lh_cursor_step(LhCursor *cursor, LhOpBuffer *buffer)
{
    const LhProgram *program = cursor->program;
    LhEmitter emitter = {
        .cursor = cursor,
        .buffer = buffer,
        .program = program,
        .rank = cursor->rank,
        .step = cursor->step,
        .phase = LH_PHASE_FORWARD,
    };

    buffer->ops_count = 0;
    buffer->parts_count = 0;
    if (program->schedule == NULL)
        return lh_explicit_step(cursor, buffer);
    if (cursor->step >= program->schedule->steps(program, cursor->rank))
        return false;
    program->schedule->emit(&emitter, cursor->step);
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

uint64_t
lh_region_bytes(const LhProgram *program, LhRegion region)
{
    return region.count * program->slots[region.slot].part_bytes;
}

bool
lh_tensor_is_kv(LhTensorKind kind)
{
    return kind == LH_TENSOR_KV || kind == LH_TENSOR_DKV;
}

uint32_t
lh_program_slices(const LhProgram *program, LhTensorKind kind)
{
    if (kind == LH_TENSOR_HIDDEN || kind == LH_TENSOR_WEIGHT)
        return 1;
    return MAX(lh_tensor_is_kv(kind) ? program->kv_slices : program->head_slices, 1);
}

LhHolding
lh_program_holding(const LhProgram *program, LhTensorKind kind, uint32_t rank, uint32_t part)
{
    const LhPlacement *placement = &program->placement;
    const uint32_t slices = lh_program_slices(program, kind);

    if (placement->kind == LH_PLACE_HEADS)
        return (LhHolding){ 0, (uint32_t)((uint64_t)rank * slices / placement->ranks) };
    return (LhHolding){ lh_placement_segment_id(placement, rank, part / slices), part % slices };
}
