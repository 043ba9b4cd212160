/*
 * Command lines: GOption entries made from the tables of fields, parsing, and help.
 */
#pragma once

#include "cli/command.h"

/*
 * Parses @arguments (what follows the command's name) into @line, whose argv is set. @help is set
 * if help was asked for. LH_ERROR_USAGE names the option and what is allowed. @line is cleared by
 * the caller in either case.
 */
bool lh_options_parse(const LhCommand *command, char *const *arguments, LhCommandLine *line,
                      bool *help, GError **error);
void lh_options_clear(const LhCommand *command, LhCommandLine *line);

/* The help of a command, or of longhaul itself (NULL); caller frees. */
char *lh_options_help(const LhCommand *command);

/* Appends a completion script for bash. */
void lh_options_completion(GString *out);
