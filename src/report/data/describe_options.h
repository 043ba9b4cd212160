/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a program, mainly the options of its schedule, as text and as JSON.
 */
#pragma once

#include "base/json/field.h"
#include "base/json/json_writer.h"
#include "program/program.h"

/* "8 ranks", or "2 groups of 8 ranks (data parallel)"; caller frees. */
char *lh_describe_groups(const LhProgramParams *p);

/* "causal, window 4,096, 3 documents"; caller frees. */
char *lh_describe_mask(const LhMaskRule *rule);

/*
 * Options of @p that differ from @base, as on a command line ("grid 4x8", "local-kv"), joined by ";
 * ". Heads count as options: schedules may pad them. Empty without any; caller frees.
 */
char *lh_describe_options(const LhProgramParams *p, const LhProgramParams *base);

/* Options that @program was made with, in the same form; caller frees. */
char *lh_describe_record(const LhProgram *program);

/* The same as members of an object, each with its text: of LhFieldMember. Caller frees with
 * lh_field_members_free(). */
GArray *lh_option_members(const LhProgramParams *p, const LhProgramParams *base);

/* All parameters of a program: of LhFieldMember. Options, the mask and linear attention are
 * included only if set. Caller clears. */
GArray *lh_params_members(const LhProgramParams *p);
