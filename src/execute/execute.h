/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes one schedule or one training step: verifies it, runs it with real data on this machine,
 * compares the results with the fp64 reference, and compares the counts with those of the verifier
 * and the simulator.
 */
#pragma once

#include "reference/tolerance.h"
#include "runtime/inject.h"
#include "scenario/setup.h"

typedef struct {
    const LhBackend *backend;
    uint32_t kernel_set; /* of the backend's device */
    LhInputKind inputs;
    uint64_t repeat; /* runs whose time counts; 0 means 1 */
    uint64_t steps;  /* consecutive training steps of each run; 0 means 1. A forward pass alone has
                        no further steps */
    bool new_tokens; /* every step has its own tokens; else all steps share them */
    /* Abort after so long without progress. 0: the larger of 60 s and 20 times what one core of
     * 1 GFLOP/s would need for all flops. */
    LhTime deadline_ps;
    /* Tokens of each rank that are compared with the reference (reference/row_sampling.h), for a
     * module with a forward pass; 0: all. */
    uint32_t check_tokens;
    const char *inject;      /* faults, in the syntax of lh_injection_new(); NULL: none */
    LhTimelineSink timeline; /* receives the last step of the last run; may be NULL */
    void *timeline_data;
} LhExecuteParams;

/* One quantity counted by runtime, verifier and simulator. Values are sums over ranks, and are
 * compared rank by rank; what one machine runs is far below 2^64. */
typedef struct {
    uint64_t counted, verified, simulated;
    bool equal; /* on every rank */
} LhCount;

typedef struct {
    const LhProgram *program; /* borrowed, or @made */
    LhProgram *made;          /* owned: program of the setup's schedule; else NULL */
    /* False in processes other than the first, where nothing below is set. */
    bool whole;
    LhRunResult *run; /* of the last run; for training, of its last step */
    /* For training: of the first step (step_compare.h), and the worst loss over all steps. */
    LhErrorReport errors;
    double *losses, *reference_losses; /* [steps], owned, training only; the reference's in fp64 */
    uint64_t steps;
    double check_s; /* seconds spent on the reference and on comparing the last run with it */
    LhCount bytes_sent, flops, peak_bytes;
    bool counts_ok;
    uint64_t repeats;
    LhTime *makespans_ps; /* [repeats]; for training, of the last step */
    bool same_bits;       /* all runs had outputs bit-identical to the first run's */
    bool unordered;       /* the kernels do not guarantee bit-identical results */
    /* SHA-256 of the outputs of all ranks, in order; for training, of the state after the last
     * step. */
    char *digest;
} LhExecuted;

/*
 * Runs the setup's program, which must have passed lh_prove_setup, or that of its first schedule.
 * LH_ERROR_NO if the schedule rejects the scenario or is not proven, or if memory is too small;
 * LH_ERROR_RUNTIME if the run fails. Wrong results are not an error. Caller frees.
 */
LhExecuted *lh_execute_setup(const LhSetup *setup, const LhExecuteParams *params, GError **error);

/* lh_execute_setup() for @program (borrowed), a module's or a step's, on the setup's cluster. */
LhExecuted *lh_execute_program(const LhSetup *setup, const LhProgram *program,
                               const LhExecuteParams *params, GError **error);
void lh_executed_free(LhExecuted *executed);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhExecuted, lh_executed_free)

/* How the backend runs the collectives of a setup; direct by default. LH_ERROR_USAGE or
 * LH_ERROR_INPUT if it does not support the way that the scenario asks for. */
bool lh_execute_way(const LhSetup *setup, const LhBackend *backend, LhCollectiveWay *way,
                    GError **error);

/* Whether all errors are within their gates, all counts are equal, and outputs are bit-identical
 * where the kernels guarantee that. */
bool lh_executed_ok(const LhExecuted *executed);
