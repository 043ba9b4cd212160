/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest of a program: the same in two processes if and only if they run the same one.
 */
#pragma once

#include "program/program.h"

/* SHA-256, as hexadecimal text, of the case, of the slots and of all ops of all ranks. Caller
 * frees. */
char *lh_program_digest(const LhProgram *program);
