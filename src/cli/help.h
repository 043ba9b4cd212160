/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help, man pages, the machine-readable listing and shell completion, all generated from the tables
 * of commands and options, so they cannot disagree with the command line.
 */
#pragma once

#include "cli/command.h"
#include "cli/terminal.h"

/* Format of help. */
typedef enum {
    LH_HELP_TEXT, /* for a terminal, at most 80 columns */
    LH_HELP_MAN,  /* a page for man(1) */
    LH_HELP_JSON, /* longhaul.help/1: every command with every option */
    LH_HELP_FORMATS
} LhHelpFormat;

/* "text", "man", "json"; NULL-terminated. */
extern const char *const lh_help_format_names[];

/* The help of a command with its common options, or with @all of them; of longhaul itself if
 * @command is NULL, with @all including the help of each command. Caller frees. */
char *lh_help_text(const LhCommand *command, bool all, LhColours colours);

/* --- shared by help and man pages ---------------------------------------------------------------
 */

/* Meanings of the exit statuses, indexed by status. */
extern const char *const lh_exit_meanings[];
#define LH_EXIT_STATUSES 5

/* One sentence about longhaul. */
extern const char *const lh_help_purpose;

/* An option of a command's help. */
typedef struct {
    const LhField *field;
    bool scenario;       /* an option of the scenario */
    bool common;         /* listed first */
    const char *heading; /* title above it; the same pointer for options of one section */
} LhHelpOption;

/* Calls @call with the options of @command in the order of help: first the common ones; with @all,
 * or if no option is common, also the others, by category. Returns the number of options left out.
 */
typedef void (*LhHelpOptionFunc)(const LhHelpOption *option, void *data);
guint lh_help_options(const LhCommand *command, bool all, LhHelpOptionFunc call, void *data);

/* The note above the options of @command; NULL: none. */
const char *lh_help_note(const LhCommand *command);
