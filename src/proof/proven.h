/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What came of proofs: of one program, or of many of one schedule.
 */
#pragma once

#include "program/program.h"
#include "scenario/setup.h"
#include "verify/verify.h"

typedef struct {
    LhPass pass;
    char *message; /* of what, and where */
} LhProofFinding;

/* One schedule, over all numbers of ranks. */
typedef struct {
    const char *name;     /* borrowed */
    GArray *proven;       /* of uint64_t: numbers of ranks for which every program was proven ... */
    GArray *unproven;     /* ... for which one was not ... */
    GArray *refused;      /* ... and that the schedule refuses altogether */
    uint64_t programs;    /* proven or not */
    uint64_t refusals;    /* programs refused */
    char *refusal;        /* the first, and its reason; NULL: none */
    uint64_t queued;      /* programs that end in one queue a rank (LhVerdict.one_queue) */
    char *not_queued;     /* why the first of the others does not; NULL: all do */
    GArray *findings;     /* of LhProofFinding */
    GPtrArray *unchecked; /* LhVerdict's, each once */
    uint64_t ops, messages, orders; /* that were checked, as were ... */
    LhWide pairs, bytes, flops;
} LhProven;

/* What is about to be done with a program. */
typedef enum {
    LH_PROVE_TO_SIMULATE,
    LH_PROVE_TO_RUN,
} LhProvePurpose;

/* Proves one program, called @name (borrowed). Caller frees. */
LhProven *lh_prove_program(const char *name, const LhProgram *program);

/*
 * Refuses a program of the setup's (LH_ERROR_NO) that comes from a file and is not proven. With
 * --unproven it is taken all the same, and its name says so from then on; but not if it names what
 * does not exist, nor, to be run, if it might touch memory that is not its own or other ranks'
 * messages.
 */
bool lh_prove_setup(const LhSetup *setup, LhProvePurpose purpose, GError **error);

/* Whether @program was taken unproven. */
bool lh_prove_is_unproven(const LhProgram *program);

void lh_proven_free(LhProven *proven);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhProven, lh_proven_free)

/* Of programs called @name (borrowed): none yet. Caller frees. */
LhProven *lh_proven_new(const char *name);

/* Counts the verdict of @program, which messages call by its ranks and @what. */
void lh_proven_add(LhProven *proven, const LhProgram *program, const LhVerdict *verdict,
                   const char *what);
