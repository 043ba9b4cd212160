/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program as a part of another one: its ops, renamed on the way (ids, slots, parts, streams,
 * communicators, ranks), so that a training step can hold the schedules of attention as they are.
 */
#pragma once

#include "program/emit.h"

/* Where the parts of an embedded program are found in the program around it. */
typedef struct {
    const LhProgram *program; /* borrowed; of one group */
    const uint16_t *slots;    /* [its slots]: the slots around it that they stand for; borrowed */
    const uint32_t *parts;    /* [its slots]: the first of their parts; borrowed; NULL: all 0 */
    uint8_t streams[LH_STREAMS_MAX];
    LhRankMap map;        /* its ranks, among those around it */
    uint8_t communicator; /* added to the numbers of its own */
    uint8_t module;       /* written into its ops; from 1 */
} LhSubprogram;

/*
 * Begins the program of the rank that has place @rank in it. Its ops on streams other than its
 * first one come after op @entry, or LH_OP_NONE: it takes its inputs as given, so nothing in it
 * would wait for whoever makes them. (Order on the first stream is the stream's own.)
 */
void lh_subprogram_begin(LhEmitter *e, const LhSubprogram *embedding, uint32_t rank,
                         uint32_t entry);

/* How many steps it has for that rank. */
uint32_t lh_subprogram_steps(const LhSubprogram *embedding, uint32_t rank);

/* Emits its next step. No other ops may be emitted between its steps than its own. */
void lh_subprogram_step(LhEmitter *e, const LhSubprogram *embedding);

/*
 * The last op emitted comes after what the embedded program has done on streams other than its
 * first: all that touched its inputs and outputs, or (@all) everything. Exchanges that nobody needs
 * may go on behind it unless @all.
 */
void lh_subprogram_after(LhEmitter *e, bool all);

/* Whether @op of @program, which is to be embedded and is not yet renamed, touches an input or an
 * output. */
bool lh_subprogram_touches_outside(const LhProgram *program, const LhOp *op, const LhPart *parts);
