/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeds one program in another: its ops are emitted with ids, slots, parts, streams, communicators
 * and ranks renamed. A training step embeds the schedules of attention unchanged this way.
 */
#pragma once

#include "program/emit.h"

/* How an embedded program maps to the enclosing one. */
typedef struct {
    const LhProgram *program; /* borrowed; covers one group */
    const uint16_t *slots;    /* [its slots]: the enclosing slots they stand for; borrowed */
    const uint32_t *parts;    /* [its slots]: their first part there; borrowed; NULL: all 0 */
    uint8_t streams[LH_STREAMS_MAX];
    LhRankMap map;        /* its ranks, within the enclosing ones */
    uint8_t communicator; /* added to its communicator numbers */
    uint16_t module;      /* written into its ops; from 1 */
} LhSubprogram;

/*
 * Begins the embedded program of its rank @rank. Ops on all its streams except the first come after
 * op @entry (or LH_OP_NONE): the embedded program assumes that its inputs are ready, so it does not
 * wait for their producers itself. The first stream keeps its own order.
 */
void lh_subprogram_begin(LhEmitter *e, const LhSubprogram *embedding, uint32_t rank,
                         uint32_t entry);

/* Orders the program that has just begun after op @id, too, on all its streams; at most two such
 * ops. */
void lh_subprogram_wait(LhEmitter *e, uint32_t id);

/* The number of steps of that rank's program. */
uint32_t lh_subprogram_steps(const LhSubprogram *embedding, uint32_t rank);

/* Emits the next step. Between the steps of an embedded program no other ops may be emitted. */
void lh_subprogram_step(LhEmitter *e, const LhSubprogram *embedding);

/*
 * Orders the last op emitted after the embedded program's work on streams other than its first:
 * after all ops that touched its inputs and outputs, or (@all) after every op. Without @all,
 * exchanges whose result is not needed may still be in flight.
 */
void lh_subprogram_after(LhEmitter *e, bool all);

/* Whether @op of @program, not yet renamed, touches an input or output of @program. */
bool lh_subprogram_touches_outside(const LhProgram *program, const LhOp *op, const LhPart *parts);
