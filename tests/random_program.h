/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on which the readers of programs must agree: several communicators, many streams,
 * allocated and freed regions, k and v alone, uneven all-to-alls, products and sums in several
 * types, labels.
 */
#pragma once

#include "program/program.h"

/* Returns a program correct by construction, a function of @seed. Caller frees. */
LhProgram *random_program(uint64_t seed);

/* Makes one small random change to an explicit program, which may break it; a function of @seed. */
void damage_program(LhProgram *program, uint64_t seed);
