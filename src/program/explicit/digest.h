/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digest of a program: two processes have the same digest if and only if they run the same program.
 */
#pragma once

#include "program/program.h"

/* Returns the SHA-256, in hexadecimal, of the params, the slots and all ops of all ranks. Caller
 * frees. */
char *lh_program_digest(const LhProgram *program);
