/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs grown op by op, for properties of all programs: any kernel on any slots whose
 * kinds and types fit its operands, messages and collectives of any tensor, on streams whose order
 * is occasionally left open. A judge alone decides which ops stay.
 */
#pragma once

#include "program/program.h"

/* Decides whether the ops of @program may stay. The program ends at the current op, frees
 * everything it allocated, and may lack some results. If not accepted, the last op is removed. */
typedef bool (*GrownJudge)(const LhProgram *program);

/*
 * Returns the program grown from @seed, as far as it got; *@complete says whether it has produced
 * all results, provided its recipes are right. @wild adds ops without a purpose, for judges that
 * check whether ops stay within their operands. Deterministic: equal arguments and an equal judge
 * give equal programs. Caller frees.
 */
LhProgram *grown_program(uint64_t seed, GrownJudge judge, bool wild, bool *complete);
