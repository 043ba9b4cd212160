/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that grow op by op, for what is said of all programs: any kernel on any slots whose
 * kinds and types suit its operands, messages and collectives of any tensor, on streams whose order
 * is now and then left open. Nothing but a judge decides which ops stay.
 */
#pragma once

#include "program/program.h"

/* Whether the ops of @program may stay: it ends where it has come to, has freed all that it had,
 * and does not have all of its results yet. If not, the last op goes again. */
typedef bool (*GrownJudge)(const LhProgram *program);

/*
 * The program that @seed says, as far as it grew, and whether it has made all its results, if its
 * recipes are right. @wild: with ops that have no purpose, of which the judge must know whether
 * they stay within their operands. The same for every call with the same and a judge that says the
 * same. Caller frees.
 */
LhProgram *grown_program(uint64_t seed, GrownJudge judge, bool wild, bool *complete);
