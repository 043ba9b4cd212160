/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of one rank alone, which every schedule has in common.
 */
#pragma once

#include "program/emit.h"

/*
 * One call of the library's kernel per pass, no exchange, and nothing held besides inputs and
 * outputs. @placement is how its tokens are cut. The params have one rank and keep the common
 * rules. Caller frees.
 */
LhProgram *lh_program_new_single(const char *name, LhPlacementKind placement,
                                 const LhProgramParams *params);
extern const LhClosedForms lh_single_closed;
