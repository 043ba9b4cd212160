/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs written by hand at which readers of programs have disagreed, or could.
 */
#pragma once

#include "program/program.h"

typedef struct {
    const char *name;
    LhProgram *(*make)(void); /* caller frees */
    /* What the verifier says of it, in part; NULL: it proves it. */
    const char *finding;
    /* What the simulator says when it is played all the same, in part; NULL: it ends. */
    const char *error;
} HandProgram;

/* Ended by a zero entry. */
extern const HandProgram hand_programs[];
