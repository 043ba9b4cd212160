/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a program, above all the options of its schedule, in words and as JSON.
 */
#pragma once

#include "base/json/json_writer.h"
#include "program/program.h"

/* "8 ranks", or "2 groups of 8 ranks (data parallel)"; caller frees. */
char *lh_describe_groups(const LhProgramParams *p);

/* "causal, window 4,096, 3 documents"; caller frees. */
char *lh_describe_mask(const LhMaskRule *rule);

/*
 * Options with the values that @p has, where @base has others, as they stand on a command line
 * ("grid 4x8", "local-kv"), joined by "; ". Heads count as options: schedules may pad them. Empty
 * if there is none; caller frees.
 */
char *lh_describe_options(const LhProgramParams *p, const LhProgramParams *base);

/* The options that @program was made with, in the same form; caller frees. */
char *lh_describe_record(const LhProgram *program);

/* The same as members of an object, with their texts: of LhFieldMember. Caller frees with
 * lh_field_members_free(). */
GArray *lh_options_members(const LhProgramParams *p, const LhProgramParams *base);

/* Those as members of the open object. */
void lh_options_json(LhJsonWriter *w, const LhProgramParams *p, const LhProgramParams *base);

/* All parameters of a program as members of the open object; of those that are options, the mask's
 * and linear attention's, the ones that are set. */
void lh_params_json(LhJsonWriter *w, const LhProgramParams *p);
