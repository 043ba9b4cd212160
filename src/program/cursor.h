/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way to read a program, generated or explicit: step by step, rank by rank.
 */
#pragma once

#include "program/program.h"

#define LH_CURSOR_MARKS 24

/* Where a generator stands in the program of one rank. */
typedef struct {
    uint32_t rank;                   /* in the program's own numbering */
    uint32_t step;                   /* that comes next */
    uint32_t next_id;                /* op id that comes next */
    uint32_t marks[LH_CURSOR_MARKS]; /* op ids the generator remembers; LH_OP_NONE at the start */
} LhCursorState;

/* A program that is being emitted as a part of another one: subprogram.h. */
typedef struct {
    LhCursorState state;
    uint32_t first_id;     /* of its ops among those of the other program */
    uint32_t entry;        /* the op that its streams begin behind, or LH_OP_NONE */
    uint32_t streams_seen; /* bits: those that have begun */
    /* By its own streams: the last op, and, but for the first, the last that touched an input or
     * output; LH_OP_NONE: none. */
    uint32_t last[LH_STREAMS_MAX], last_outside[LH_STREAMS_MAX];
} LhEmbeddedState;

/* Plain data of constant size: copy it to fork, keep one per rank. */
typedef struct {
    const LhProgram *program;
    uint32_t rank; /* of all */
    LhRankMap map; /* from the ranks of the rank's group to all ranks */
    LhCursorState own;
    LhEmbeddedState embedded;
} LhCursor;

void lh_cursor_init(LhCursor *cursor, const LhProgram *program, uint32_t rank);

/*
 * Replaces @buffer's contents by the ops of the next step (possibly none) and advances; false at
 * the end of the program, with an empty buffer. Costs O(ops of the step) and, once the buffer has
 * grown, no allocation.
 */
bool lh_cursor_step(LhCursor *cursor, LhOpBuffer *buffer);

/* Moves the ranks that the buffer's ops name, from op @first and message @first_part on. */
void lh_ops_map_ranks(LhOpBuffer *buffer, uint32_t first, uint32_t first_part, LhRankMap map);
