/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the files a command line reads and writes, made before any work.
 */
#pragma once

#include "cli/command.h"

/*
 * Checks that every output file named by options can be written (LH_ERROR_RUNTIME), is of the kind
 * the option is for, and is neither an input of the command nor another output (LH_ERROR_USAGE).
 */
bool lh_outputs_check(const LhCommand *command, const LhCommandLine *line, GError **error);

/* Checks that no input file is already an output (LH_ERROR_USAGE). Part of the above, for a command
 * line whose outputs belong to another one. */
bool lh_inputs_check(const LhCommand *command, const LhCommandLine *line, GError **error);
