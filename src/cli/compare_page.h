/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as a page. The fastest schedule and the runner-up are simulated again for their
 * timelines.
 */
#pragma once

#include "cli/command.h"

typedef struct {
    const char *path;        /* .html or .pdf */
    const char *ranks_shown; /* as on the command line; NULL: all, or the first ones */
    LhTime max_work_ps;
    guint jobs; /* threads; 0: one per core */
} LhComparePage;

/* Options of pages; @member is a member of @Options. */
#define LH_OPTION_RANKS_SHOWN(Options, member)                                                     \
    {                                                                                              \
        .name = "ranks-shown", .category = LH_ABOUT_FILES, .type = LH_FIELD_STRING,                \
        .offset = offsetof(Options, member), .flags = LH_COMMAND_SHOWN, .placeholder = "LIST",     \
        .description = "Ranks that timelines of the page show, such as 0-3,12; default all, or "   \
                       "the first 1,024. The last one to finish is always shown."                  \
    }

/* Checks, before any long work, that @page, given by @option, can be written and that its ranks
 * exist. */
bool lh_compare_page_check(const LhComparePage *page, const char *option, const LhSetup *setup,
                           GError **error);

/* Writes the page. LH_ERROR_NO if the repeated simulations would take too long,
 * LH_ERROR_INTERRUPTED if the comparison was interrupted, LH_ERROR_RUNTIME. */
bool lh_compare_page_write(const LhCommandLine *line, const LhSetup *setup,
                           const LhComparison *comparison, const LhComparePage *page,
                           GError **error);
