/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines: GOption entries made from the tables of fields, and parsing. An option that takes
 * one value is refused if it is given twice, and so is one that the command would not read.
 */
#pragma once

#include "base/files/file_uses.h"
#include "cli/command.h"

/* Whether help was asked for, in place of what the command does. */
typedef enum { LH_HELP_NONE, LH_HELP_COMMON, LH_HELP_ALL } LhHelpExtent;

/*
 * Parses @arguments (what follows the command's name) into @line, whose argv is set. @help says
 * whether help was asked for, with --help, and of all options, with --all as well. LH_ERROR_USAGE
 * names the option and what is allowed. @line is cleared by the caller in either case.
 */
bool lh_options_parse(const LhCommand *command, char *const *arguments, LhCommandLine *line,
                      LhHelpExtent *help, GError **error);
void lh_options_clear(const LhCommand *command, LhCommandLine *line);

/* Makes @options as if @field, one of them, had not been given. */
void lh_options_forget(const LhField *field, void *options);

/* Calls @call with every option of @command, its own first; @scenario says whether an option is one
 * of the scenario's. */
typedef void (*LhOptionFunc)(const LhField *field, bool scenario, void *data);
void lh_options_each(const LhCommand *command, LhOptionFunc call, void *data);

/* What is done with the files that an option's values name. */
LhFileUse lh_options_use(const LhField *field);

/* Likewise, of words that name @names, as in `names` of a field or a command; NULL is allowed. */
LhFileUse lh_options_use_of(const char *names);

/* Whether it is the file that the result goes to. */
bool lh_options_is_output(const LhField *field);

/* The letter of its short form, 'o' for -o; 0: it has none. */
char lh_options_letter(const LhField *field);

/* Whether @command takes it several times, each time with one more value. */
bool lh_options_is_list(const LhCommand *command, const LhField *field);

/* What it does, and whether it may be given several times: to @command or, if that is NULL, to
 * which of those that take this option of scenarios. Caller frees. */
char *lh_options_description(const LhCommand *command, const LhField *field);
