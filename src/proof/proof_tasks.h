/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many programs proven at once.
 */
#pragma once

#include "proof/proven.h"

/* A program that waits for its verdict. */
typedef struct {
    LhProgram *program;
    char *what;
    LhVerdict *verdict; /* NULL: not yet */
} LhProofTask;

/* Of LhProofTask *. */
void lh_proof_task_free(gpointer data);

/* Verifies what waits, the first program alone: the others are about as large. Verdicts are counted
 * in the order of the programs. */
void lh_proof_tasks_verify(LhProven *proven, GPtrArray *tasks);
