/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a command line writes, looked at before any work is done.
 */
#pragma once

#include "cli/command.h"

/*
 * Whether every file that the options of @command name can be written (LH_ERROR_RUNTIME), is what
 * the option is for, and is neither a file that the command reads nor another of its outputs
 * (LH_ERROR_USAGE).
 */
bool lh_outputs_check(const LhCommand *command, const LhCommandLine *line, GError **error);

/* Whether none of the files that the options of @command read is an output already
 * (LH_ERROR_USAGE): part of the above, for a line whose outputs are those of another one. */
bool lh_inputs_check(const LhCommand *command, const LhCommandLine *line, GError **error);
