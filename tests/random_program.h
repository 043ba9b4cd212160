/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs for the readers of programs to agree on: several communicators, many streams,
 * regions that come and go, k and v alone, uneven all-to-alls, products and sums in several types,
 * labels.
 */
#pragma once

#include "program/program.h"

/* A program that is correct by construction, the same for every call with @seed. Caller frees. */
LhProgram *random_program(uint64_t seed);

/* Breaks an explicit program, perhaps: one small change at a place that @seed says. */
void damage_program(LhProgram *program, uint64_t seed);
