/* SPDX-License-Identifier: Apache-2.0 */
/* Handwritten programs on which readers of programs have disagreed or might. */
#pragma once

#include "program/program.h"

typedef struct {
    const char *name;
    LhProgram *(*make)(void); /* caller frees */
    /* part of the verifier's finding; NULL if it proves the program */
    const char *finding;
    /* part of the simulator's error when it simulates the program anyway; NULL if it completes */
    const char *error;
} HandProgram;

/* Ended by a zero entry. */
extern const HandProgram hand_programs[];
