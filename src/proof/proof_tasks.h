/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proving many programs in parallel.
 */
#pragma once

#include "base/task.h"
#include "proof/proven.h"

/* A program to be proven. */
typedef struct {
    LhProven *proven; /* borrowed: gets the verdict */
    LhProgram *program;
    char *what;
    double ops;         /* estimated */
    uint64_t cells;     /* parts of all slots of all ranks */
    LhVerdict *verdict; /* NULL: not yet proven */
} LhProofTask;

/* GDestroyNotify of a LhProofTask. */
void lh_proof_task_free(gpointer data);

/* Verifies all tasks, the largest first, and removes them. Verdicts are added in the order of the
 * tasks. After each proof @task gets its schedule and the number of proofs so far: @ended, which
 * further calls go on counting. */
void lh_proof_tasks_verify(GPtrArray *tasks, const LhTask *task, uint64_t *ended);
