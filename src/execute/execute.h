/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One schedule or one training step, executed: verified first, then run with real data on this
 * machine, its results held against the fp64 reference and its counts against verifier and
 * simulator.
 */
#pragma once

#include "reference/tolerance.h"
#include "runtime/inject.h"
#include "scenario/setup.h"

typedef struct {
    const LhBackend *backend;
    uint32_t kernel_set; /* of the backend's device */
    LhInputKind inputs;
    uint64_t repeat;       /* runs whose time counts; 0 means 1 */
    uint64_t steps;        /* of training, one after the other, in each of them; 0 means 1 */
    bool new_tokens;       /* each of these has tokens of its own; else all have the same */
    LhTime deadline_ps;    /* nothing moved for so long; 0: the larger of 60 s and 20 times what one
                              core of 1 GFLOP/s would need for everything */
    uint32_t check_tokens; /* of each rank that are held against the reference
                              (reference/row_sampling.h), of a module whose pass is not the backward
                              one alone; 0: all */
    const char *inject;    /* faults, as lh_injection_new reads them; NULL: none */
    LhTimelineSink timeline; /* of the last run, of its last step; may be NULL */
    void *timeline_data;
} LhExecuteParams;

/* The same count by three readers of the program. Sums over ranks, but compared rank by rank; what
 * a machine has run is far from 2^64. */
typedef struct {
    uint64_t counted, verified, simulated;
    bool equal; /* on every rank */
} LhCount;

typedef struct {
    const LhProgram *program; /* borrowed, or that below */
    LhProgram *made;          /* owned: of the setup's schedule; else NULL */
    bool whole;               /* false in processes other than the first: nothing below is set */
    LhRunResult *run;         /* of the last run; of training, its last step */
    LhErrorReport errors;     /* of training: of the first step (step_compare.h), and the worst
                                 loss of all */
    double *losses, *reference_losses; /* [steps], owned: of training; the reference's in fp64 */
    uint64_t steps;
    double check_s; /* what the reference took, and to compare the last run with it */
    LhCount bytes_sent, flops, peak_bytes;
    bool counts_ok;
    uint64_t repeats;
    LhTime *makespans_ps; /* [repeats]; of training, of the last step */
    bool same_bits;       /* every run had the outputs of the first, to the bit */
    bool unordered;       /* the kernels do not promise that */
    char *digest;         /* SHA-256 of the outputs of all ranks, in order; of training, of what the
                             last step leaves */
} LhExecuted;

/*
 * Runs the setup's program, which has passed lh_prove_setup, or that of its first schedule.
 * LH_ERROR_NO for a schedule that refuses or is not proven; LH_ERROR_RUNTIME for a run that broke.
 * Results that are wrong are no error. Caller frees.
 */
LhExecuted *lh_execute_setup(const LhSetup *setup, const LhExecuteParams *params, GError **error);

/* The same for @program (borrowed), a module's or a step's, on the setup's cluster. */
LhExecuted *lh_execute_program(const LhSetup *setup, const LhProgram *program,
                               const LhExecuteParams *params, GError **error);
void lh_executed_free(LhExecuted *executed);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhExecuted, lh_executed_free)

/* How a backend makes the collectives of a setup, directly by default; LH_ERROR_USAGE or
 * LH_ERROR_INPUT if it cannot make them as the scenario says. */
bool lh_execute_way(const LhSetup *setup, const LhBackend *backend, LhCollectiveWay *way,
                    GError **error);

/* Within the gates, counts equal, bits equal where they are promised. */
bool lh_executed_ok(const LhExecuted *executed);
