/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison as a page: the fastest schedule and the runner-up are played once more, to be looked
 * at closely.
 */
#pragma once

#include "cli/command.h"

typedef struct {
    const char *path;        /* .html or .pdf */
    const char *ranks_shown; /* by timelines, as of an option; NULL: all, or the first ones */
    LhTime max_work_ps;
} LhComparePage;

/* What the options of pages are; all of them members of @Options. */
#define LH_OPTION_RANKS_SHOWN(Options, member)                                                     \
    {                                                                                              \
        .name = "ranks-shown", .category = LH_ABOUT_FILES, .type = LH_FIELD_STRING,                \
        .offset = offsetof(Options, member), .flags = LH_COMMAND_SHOWN, .placeholder = "LIST",     \
        .description = "Ranks that timelines of the page show, such as 0-3,12; default all, or "   \
                       "the first 1,024. The last one to finish is always shown."                  \
    }

/* Before long work: whether @page, of @option, can be written, and has ranks of @ranks. */
bool lh_compare_page_check(const LhComparePage *page, const char *option, const LhSetup *setup,
                           GError **error);

/* Writes it. LH_ERROR_NO if looking closely would take too long, LH_ERROR_INTERRUPTED if the
 * comparison was interrupted, LH_ERROR_RUNTIME. */
bool lh_compare_page_write(const LhCommandLine *line, const LhSetup *setup,
                           const LhComparison *comparison, const LhComparePage *page,
                           GError **error);
