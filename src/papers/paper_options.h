/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that a row of a published table implies.
 */
#pragma once

#include "scenario/scenario.h"

/* Options in the order of first mention, each once. */
typedef struct {
    GPtrArray *names, *values; /* of char *; a flag's value is NULL */
} LhPaperOptions;

void lh_paper_options_free(LhPaperOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPaperOptions, lh_paper_options_free)

/* The value of an option; NULL if it is not set, or is a flag. Borrowed. */
const char *lh_paper_option(const LhPaperOptions *options, const char *name);

/* Sets an option, replacing an earlier value. @value: NULL for a flag. */
void lh_paper_options_set(LhPaperOptions *options, const char *name, const char *value);

/* "a=b, c, d=e"; caller frees. */
char *lh_paper_options_text(const LhPaperOptions *options);

/*
 * Builds the scenario of the options. NULL with @error: LH_ERROR_NO if scenarios have no such
 * option (a later version may), LH_ERROR_USAGE for an invalid value. Caller frees.
 */
LhScenario *lh_paper_options_scenario(const LhPaperOptions *options, GError **error);

/* Empty options. Caller frees. */
LhPaperOptions *lh_paper_options_new(void);

/* Unsets an option. */
void lh_paper_options_take_back(LhPaperOptions *options, const char *name);

/* Caller frees. */
LhPaperOptions *lh_paper_options_copy(const LhPaperOptions *options);
