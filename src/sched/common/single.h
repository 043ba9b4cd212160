/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one-rank program, common to all schedules.
 */
#pragma once

#include "program/emit.h"

/*
 * Creates the program of one rank: one call of the library's kernel per pass, no exchange, and no
 * memory besides inputs and outputs. @placement is the split of its tokens. The params have one
 * rank and satisfy the common rules. Caller frees.
 */
LhProgram *lh_program_new_single(const char *name, LhPlacementKind placement,
                                 const LhProgramParams *params);
extern const LhClosedForms lh_single_closed;
