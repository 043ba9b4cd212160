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

/* The help of a command with its common options or @all of them; or of longhaul itself (NULL), and
 * then @all is the help of each command, too. Caller frees. */
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
    bool scenario;       /* one of the scenario's */
    bool common;         /* one of those that help begins with */
    const char *heading; /* above it; the same pointer for options of one section */
} LhHelpOption;

/* Calls @call with the options of @command as help has them: the common ones, and if @all, or if
 * none is more common than others, then the rest by category. Returns how many are left out. */
typedef void (*LhHelpOptionFunc)(const LhHelpOption *option, void *data);
guint lh_help_options(const LhCommand *command, bool all, LhHelpOptionFunc call, void *data);

/* What is said of options of @command before them; NULL: nothing. */
const char *lh_help_note(const LhCommand *command);
