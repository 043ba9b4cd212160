/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cursors: the one way to read a program, generated or explicit, rank by rank and step by step.
 */
#pragma once

#include "program/program.h"

#define LH_CURSOR_MARKS 40

/* Position of a generator in the program of one rank. */
typedef struct {
    uint32_t rank;                   /* in the program's own numbering */
    uint32_t step;                   /* the next step */
    uint32_t next_id;                /* the id of the next op */
    uint32_t marks[LH_CURSOR_MARKS]; /* op ids the generator remembers; LH_OP_NONE at the start */
} LhCursorState;

/* State of a program that is emitted as part of another one: see subprogram.h. */
typedef struct {
    LhCursorState state;
    uint32_t first_id;     /* id of its first op in the enclosing program */
    uint32_t entry;        /* the op that its streams start after, or LH_OP_NONE */
    uint32_t also[2];      /* further ops that all its streams start after, or LH_OP_NONE */
    uint32_t streams_seen; /* bit set of the streams that have started */
    /* Per stream of the embedded program: the last op, and (on all streams except the first) the
     * last op that touched an input or output; LH_OP_NONE: none. */
    uint32_t last[LH_STREAMS_MAX], last_outside[LH_STREAMS_MAX];
} LhEmbeddedState;

/* Plain data: copy it to fork, keep one per rank. */
typedef struct {
    const LhProgram *program;
    uint32_t rank; /* among all ranks */
    LhRankMap map; /* from ranks of the group to all ranks */
    LhCursorState own;
    LhEmbeddedState embedded; /* used only by programs that embed others */
} LhCursor;

/* Size of the part of a cursor that @program uses: enough room for one that is only passed by
 * pointer. */
static inline gsize
lh_cursor_bytes(const LhProgram *program)
{
    return program->generator->embeds ? sizeof(LhCursor) : offsetof(LhCursor, embedded);
}

void lh_cursor_init(LhCursor *cursor, const LhProgram *program, uint32_t rank);

/*
 * Replaces @buffer's contents by the ops of the next step (possibly none) and advances. Returns
 * false at the end of the program, with an empty buffer. Costs O(ops of the step) and, once the
 * buffer has grown, no allocation.
 */
bool lh_cursor_step(LhCursor *cursor, LhOpBuffer *buffer);

/* Renumbers by @map the ranks named in @buffer, from op @first and message @first_part on. */
void lh_ops_map_ranks(LhOpBuffer *buffer, uint32_t first, uint32_t first_part, LhRankMap map);
