/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that a row of a published table means.
 */
#pragma once

#include "scenario/scenario.h"

/* Options in the order in which they were first said; each once. */
typedef struct {
    GPtrArray *names, *values; /* of char *; a flag's value is NULL */
} LhPaperOptions;

void lh_paper_options_free(LhPaperOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPaperOptions, lh_paper_options_free)

/* The value of an option; NULL if it was not said, or is a flag. Borrowed. */
const char *lh_paper_option(const LhPaperOptions *options, const char *name);

/* Says an option, in place of what was said of it before. @value: NULL for a flag. */
void lh_paper_options_set(LhPaperOptions *options, const char *name, const char *value);

/* "a=b, c, d=e"; caller frees. */
char *lh_paper_options_text(const LhPaperOptions *options);

/*
 * The scenario that the options make. NULL with @error: LH_ERROR_NO if scenarios have no such
 * option (it may come with a later version), LH_ERROR_USAGE if a value is none of the option's.
 * Caller frees.
 */
LhScenario *lh_paper_options_scenario(const LhPaperOptions *options, GError **error);

/* None yet. Caller frees. */
LhPaperOptions *lh_paper_options_new(void);

/* As if the option had not been said. */
void lh_paper_options_take_back(LhPaperOptions *options, const char *name);

/* Caller frees. */
LhPaperOptions *lh_paper_options_copy(const LhPaperOptions *options);
