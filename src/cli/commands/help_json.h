/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option of every command, for programs: longhaul.help/1.
 */
#pragma once

#include "cli/command.h"

/* Fields of the document. */
extern const LhField lh_help_fields[];

/* Appends the listing of @command, or of all commands (NULL). */
void lh_help_json(const LhCommand *command, const LhStamp *stamp, GString *out);
