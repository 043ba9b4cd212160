/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of proofs: of one program, or of many programs of one schedule.
 */
#pragma once

#include "program/program.h"
#include "scenario/setup.h"
#include "verify/verify.h"

typedef struct {
    LhPass pass;
    char *message; /* the program and the finding */
} LhProofFinding;

/* Results of one schedule over all numbers of ranks. */
typedef struct {
    const char *name;  /* borrowed */
    GArray *proven;    /* of uint64_t: numbers of ranks for which every program was proven, ... */
    GArray *unproven;  /* ... for which at least one was not, ... */
    GArray *refused;   /* ... and for which the schedule refuses all programs */
    uint64_t programs; /* verified programs, proven or not */
    uint64_t refusals; /* refused programs */
    char *refusal;     /* the first refusal and its reason; NULL: none */
    uint64_t queued;   /* programs that end with one queue per rank (LhVerdict.one_queue) */
    char *not_queued;  /* why the first of the other programs does not; NULL: all do */
    GArray *findings;  /* of LhProofFinding */
    GPtrArray *unchecked;           /* sentences of LhVerdict, once each */
    uint64_t ops, messages, orders; /* checked, like the next row */
    LhWide pairs, bytes, flops;
} LhProven;

/* Intended use of a program. */
typedef enum {
    LH_PROVE_TO_SIMULATE,
    LH_PROVE_TO_RUN,
} LhProvePurpose;

/* Proves one program, named @name (borrowed). Caller frees. */
LhProven *lh_prove_program(const char *name, const LhProgram *program);

/*
 * Refuses (LH_ERROR_NO) a program of the setup that comes from a file and is not proven. With
 * --unproven it is used anyway, and its name says so from then on. Programs that name something
 * unknown are always refused; to be run, also those that might access memory that is not theirs or
 * messages of other ranks.
 */
bool lh_prove_setup(const LhSetup *setup, LhProvePurpose purpose, GError **error);

/* Whether @program is used although unproven. */
bool lh_prove_is_unproven(const LhProgram *program);

void lh_proven_free(LhProven *proven);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhProven, lh_proven_free)

/* Returns empty results for programs named @name (borrowed). Caller frees. */
LhProven *lh_proven_new(const char *name);

/* Adds the verdict of @program, which messages describe by its ranks and @what. */
void lh_proven_add(LhProven *proven, const LhProgram *program, const LhVerdict *verdict,
                   const char *what);
