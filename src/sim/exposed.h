/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exposed communication: how long a rank is idle because its next kernel waits for communication
 * of one dimension of parallelism, waiting for other ranks included. Ops are judged in program
 * order as soon as all ops before them are complete, so that only ops in flight are kept.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

#define LH_EXPOSED_DIMENSIONS 8

/* An op that is not judged yet. */
typedef struct {
    LhTime start_ps, end_ps;
    uint32_t after[LH_OP_AFTER_MAX];
    uint8_t after_count;
    uint8_t dimension; /* that it communicates for; LH_EXPOSED_DIMENSIONS: none */
    bool computes;     /* runs on a compute stream */
    bool of_host;      /* as in LhLateOp */
    bool done;
} LhExposedOp;

/* A judged op that communicated, or worked on the host, beyond the end of all kernels judged so
 * far. */
typedef struct {
    LhTime end_ps;
    uint32_t id;
    uint8_t dimension;
    bool of_host; /* a copy, or a kernel on the host's CPU */
} LhLateOp;

/* Of one rank. */
typedef struct {
    LhExposedOp *ops;     /* ring of ops [first, next) */
    uint32_t mask;        /* its length - 1; 0: none */
    uint32_t first, next; /* ids */
    LhTime busy_until_ps; /* latest end of the kernels judged so far */
    GArray *late;         /* of LhLateOp: the only judged ops that a wait may be charged to */
    LhTime exposed_ps[LH_EXPOSED_DIMENSIONS];
} LhExposed;

/* Frees the members. */
void lh_exposed_clear(LhExposed *exposed);

/* The rank's next op has been issued; @dimension as above. */
void lh_exposed_issue(LhExposed *exposed, const LhProgram *program, const LhOp *op,
                      uint8_t dimension);

/* Op @id has started; has ended. */
static inline void
lh_exposed_start(LhExposed *exposed, uint32_t id, LhTime now)
{
    exposed->ops[id & exposed->mask].start_ps = now;
}

void lh_exposed_end(LhExposed *exposed, uint32_t id, LhTime now);

/* All ops have ended. The time behind the last kernel until the last copy, or kernel on the host's
 * CPU, is exposed, too. */
void lh_exposed_close(LhExposed *exposed);

/* Mixes the state into @hash, with ids and times relative to @issued and @now: equal for states
 * from which the same ops expose the same. */
uint64_t lh_exposed_mix(uint64_t hash, const LhExposed *exposed, uint32_t issued, LhTime now);
