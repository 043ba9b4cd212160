/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs built op by op, for tests: one emitter per rank, used in any order, then an explicit
 * program of all ranks.
 */
#pragma once

#include "program/emit.h"
#include "program/explicit/explicit.h"

typedef struct {
    LhProgram *program;
    LhOpBuffer *buffers;   /* [ranks] */
    LhCursorState *states; /* [ranks] */
    LhEmitter *emitters;   /* [ranks], arguments of the lh_emit_ functions */
} Built;

/* Starts a program with @params' ranks and enough tokens for each; the caller declares slots and
 * streams. */
static inline Built
built_placed(const char *name, const LhProgramParams *params, LhPlacementKind placement)
{
    Built b = {
        .program = lh_program_create(name, &lh_explicit_generator, params, placement),
        .buffers = g_new0(LhOpBuffer, params->ranks),
        .states = g_new0(LhCursorState, params->ranks),
        .emitters = g_new0(LhEmitter, params->ranks),
    };

    for (uint32_t rank = 0; rank < params->ranks; rank++) {
        b.states[rank].rank = rank;
        b.emitters[rank] = (LhEmitter){ .program = b.program,
                                        .buffer = &b.buffers[rank],
                                        .state = &b.states[rank],
                                        .marks = b.states[rank].marks,
                                        .rank = rank };
    }
    return b;
}

static inline Built
built_new(const char *name, const LhProgramParams *params)
{
    return built_placed(name, params, LH_PLACE_CONTIGUOUS);
}

/* Returns the index of the current step. A step is a stretch of equal phase and step, as in
 * files. */
static inline uint32_t
built_steps(const LhOpBuffer *buffer)
{
    uint32_t steps = 0;

    for (uint32_t i = 0; i < buffer->ops_count; i++)
        steps += i == 0 || buffer->ops[i].phase != buffer->ops[i - 1].phase ||
                 buffer->ops[i].step != buffer->ops[i - 1].step;
    return steps;
}

/* A rank of an explicit program whose ops are those of the buffer. */
static inline LhExplicitRank
built_rank(const LhOpBuffer *buffer)
{
    return (LhExplicitRank){ .ops = buffer->ops,
                             .ops_count = buffer->ops_count,
                             .parts = buffer->parts,
                             .parts_count = buffer->parts_count,
                             .counts = buffer->counts,
                             .counts_count = buffer->counts_count,
                             .steps_count = built_steps(buffer) };
}

/* Returns the program, which the caller frees, and empties @b. */
static inline LhProgram *
built_end(Built *b)
{
    const uint32_t ranks = b->program->params.ranks;
    LhProgram *program = b->program;
    LhExplicit *all = g_new0(LhExplicit, 1);

    all->ranks = g_new0(LhExplicitRank, ranks);
    all->ranks_count = ranks;
    for (uint32_t rank = 0; rank < ranks; rank++)
        all->ranks[rank] = built_rank(&b->buffers[rank]);
    program->plan = all;
    program->plan_free = lh_explicit_free;
    g_free(b->buffers);
    g_free(b->states);
    g_free(b->emitters);
    *b = (Built){ 0 };
    return program;
}

/* Attention of one head over @ranks ranks with one token each: parameters for programs without
 * attention. */
static inline LhProgramParams
built_params(uint32_t ranks)
{
    return (LhProgramParams){ .attention = { .batch = 1,
                                             .seq_length = ranks,
                                             .heads = 1,
                                             .groups = 1,
                                             .head_dim = 32,
                                             .dtype = LH_DTYPE_BF16 },
                              .ranks = ranks,
                              .mask.causal = true,
                              .pass = LH_PASS_FWD };
}
