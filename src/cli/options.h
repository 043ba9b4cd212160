/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line parsing, with GOption entries generated from the tables of fields. A single-valued
 * option given twice is rejected, and so is one that the command does not read.
 */
#pragma once

#include "base/files/file_uses.h"
#include "cli/command.h"

/* What help was requested in place of running the command. */
typedef enum { LH_HELP_NONE, LH_HELP_COMMON, LH_HELP_ALL } LhHelpExtent;

/*
 * Parses @arguments (what follows the command's name) into @line, whose argv is set. Sets @help to
 * the help requested: with --help, or of all options with --all as well. LH_ERROR_USAGE names the
 * option and what is allowed. The caller clears @line in either case.
 */
bool lh_options_parse(const LhCommand *command, char *const *arguments, LhCommandLine *line,
                      LhHelpExtent *help, GError **error);
void lh_options_clear(const LhCommand *command, LhCommandLine *line);

/* Resets @field, one of @options, to its state when not given. */
void lh_options_forget(const LhField *field, void *options);

/* Calls @call for every option of @command, its own first; @scenario: the option is one of the
 * scenario's. */
typedef void (*LhOptionFunc)(const LhField *field, bool scenario, void *data);
void lh_options_each(const LhCommand *command, LhOptionFunc call, void *data);

/* How the files named by an option's values are used. */
LhFileUse lh_options_use(const LhField *field);

/* Likewise for words that name @names, as in `names` of a field or command; NULL is allowed. */
LhFileUse lh_options_use_of(const char *names);

/* Whether the option names the file for the result. */
bool lh_options_is_output(const LhField *field);

/* The letter of its short form, 'o' for -o; 0: none. */
char lh_options_letter(const LhField *field);

/* Whether @command accepts the option several times, adding a value each time. */
bool lh_options_is_list(const LhCommand *command, const LhField *field);

/* Description of an option, including whether it may be repeated: for @command or, if NULL, for
 * which of the commands that take this scenario option. Caller frees. */
char *lh_options_description(const LhCommand *command, const LhField *field);
