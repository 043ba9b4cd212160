/* SPDX-License-Identifier: Apache-2.0 */
/* See patterns.h. The programs use the same cursors and engine as every schedule. */
#include "patterns.h"

#include "jitter.h"

#include "program/emit.h"

#include <string.h>

enum { SLOT_SEND, SLOT_RECEIVE };
enum { STREAM_COMPUTE, STREAM_COMM };
enum { MARK_COMPUTE, MARK_EXCHANGE };

static uint32_t
steps(const LhProgram *program, uint32_t rank)
{
    const LhPattern *pattern = program->plan;

    (void)rank;
    return pattern->bal ? pattern->ranks / 2 : pattern->ranks;
}

static void
emit(LhEmitter *e, uint32_t step)
{
    const LhPattern *pattern = e->program->plan;
    uint32_t p = e->rank, ranks = pattern->ranks, distance = pattern->bal ? step + 1 : 1;
    uint32_t to = p + distance < ranks ? p + distance : p + distance - ranks;
    uint32_t from = p >= distance ? p - distance : p + ranks - distance;
    LhKernelArgs args = { .batch = 1 };
    uint32_t computed, exchanged;

    computed = lh_emit_compute(e, STREAM_COMPUTE, LH_KERNEL_ID_copy, &args);
    lh_emit_after(e, e->marks[MARK_EXCHANGE]);
    exchanged = lh_emit_exchange(e, STREAM_COMM);
    lh_emit_after(e, e->marks[MARK_COMPUTE]);
    lh_emit_part(e, true, to, 0, pattern->bytes);
    lh_emit_region(e, SLOT_SEND, 0, 1);
    lh_emit_part(e, false, from, 0, pattern->bytes);
    lh_emit_region(e, SLOT_RECEIVE, 0, 1);
    e->marks[MARK_COMPUTE] = computed;
    e->marks[MARK_EXCHANGE] = exchanged;
}

static const LhGenerator generator = { .steps = steps, .emit = emit };

static void
add_slot(LhProgram *program, const char *name, LhSlotRole role, uint64_t bytes)
{
    lh_program_add_slot(program, (LhSlotParams){ .name = name,
                                                 .kind = LH_TENSOR_HIDDEN,
                                                 .role = role,
                                                 .dtype = LH_DTYPE_BF16,
                                                 .parts = 1,
                                                 .part_bytes = bytes });
}

LhProgram *
lh_pattern_program(LhPattern *pattern)
{
    const LhProgramParams params = {
        .attention = { .batch = 1,
                       .seq_length = pattern->ranks,
                       .heads = 1,
                       .groups = 1,
                       .head_dim = 1,
                       .dtype = LH_DTYPE_BF16 },
        .ranks = pattern->ranks,
    };
    LhProgram *program = lh_program_create("pattern", &generator, &params, LH_PLACE_CONTIGUOUS);

    program->plan = pattern;
    add_slot(program, "send", LH_SLOT_INPUT, pattern->bytes);
    add_slot(program, "receive", LH_SLOT_OUTPUT, pattern->bytes);
    lh_program_add_stream(program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    return program;
}

LhTime
lh_pattern_compute_time(void *data, uint32_t rank, const LhOp *op)
{
    const LhPattern *pattern = data;
    const double u = bench_jitter(rank, op->step);

    return (LhTime)(pattern->compute_s * (1.0 + pattern->jitter * u) * (double)LH_PS_PER_S + 0.5);
}
