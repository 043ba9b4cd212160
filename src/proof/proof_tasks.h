/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proving many programs in parallel.
 */
#pragma once

#include "proof/proven.h"

/* A program to be proven. */
typedef struct {
    LhProgram *program;
    char *what;
    LhVerdict *verdict; /* NULL: not yet proven */
} LhProofTask;

/* GDestroyNotify of a LhProofTask. */
void lh_proof_task_free(gpointer data);

/* Verifies all tasks and removes them. The size of the first program stands for that of the others.
 * Verdicts are added in program order. */
void lh_proof_tasks_verify(LhProven *proven, GPtrArray *tasks);
